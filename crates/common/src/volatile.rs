//! The parameters that differ between two addresses of one service that are otherwise alike.

use smol_str::{SmolStr, SmolStrBuilder};

use crate::keys;

/// `pid` and `timestamp` of one URL, kept apart so that everything else can be shared.
///
/// Both values lie in one text, which as a rule is short enough to need no allocation: there may be a hundred thousand.
#[derive(Clone, Default)]
pub(crate) struct Volatile {
    /// The pid, then the timestamp.
    text: SmolStr,
    pid_len: u32,
    has_pid: bool,
    has_timestamp: bool,
}

impl Volatile {
    pub(crate) fn new(pid: Option<&str>, timestamp: Option<&str>) -> Self {
        // Four gigabytes are no pid.
        let pid = pid.and_then(|pid| Some((pid, u32::try_from(pid.len()).ok()?)));
        let mut text = SmolStrBuilder::new();
        text.push_str(pid.map_or("", |(pid, _)| pid));
        text.push_str(timestamp.unwrap_or(""));
        Self {
            text: text.finish(),
            pid_len: pid.map_or(0, |(_, len)| len),
            has_pid: pid.is_some(),
            has_timestamp: timestamp.is_some(),
        }
    }

    pub(crate) fn owns(name: &str) -> bool {
        name == keys::TIMESTAMP || name == keys::PID
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if name == keys::PID { self.pid() } else { self.timestamp() }
    }

    pub(crate) fn pid(&self) -> Option<&str> {
        self.has_pid.then(|| &self.text[..self.pid_len as usize])
    }

    pub(crate) fn timestamp(&self) -> Option<&str> {
        self.has_timestamp.then(|| &self.text[self.pid_len as usize..])
    }

    /// The same with one of the two set or removed.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Self {
        if name == keys::PID { Self::new(value, self.timestamp()) } else { Self::new(self.pid(), value) }
    }

    /// Those present, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [self.pid().map(|value| (keys::PID, value)), self.timestamp().map(|value| (keys::TIMESTAMP, value))]
            .into_iter()
            .flatten()
    }
}
