//! The parameters that differ between two addresses of one service that are otherwise alike.

use smol_str::SmolStr;

use crate::keys;

/// `pid` and `timestamp` of one URL, kept apart so that everything else can be shared.
#[derive(Clone, Default)]
pub(crate) struct Volatile {
    pub(crate) pid: Option<SmolStr>,
    pub(crate) timestamp: Option<SmolStr>,
}

impl Volatile {
    pub(crate) fn owns(name: &str) -> bool {
        name == keys::TIMESTAMP || name == keys::PID
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if name == keys::PID { self.pid.as_deref() } else { self.timestamp.as_deref() }
    }

    /// Sets or removes one of the two.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) {
        let value = value.map(SmolStr::new);
        if name == keys::PID { self.pid = value } else { self.timestamp = value }
    }

    /// Those present, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [keys::PID, keys::TIMESTAMP].into_iter().filter_map(|name| Some((name, self.get(name)?)))
    }
}
