//! Mappings across restarts (`MappingCacheManager`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::mapping::Applications;
use parking_lot::Mutex;

use crate::cache_file::{CacheFile, FIRST_SAVE};
use crate::lru::Lru;

/// Entries kept. Origin: `dubbo.mapping.cache.entrySize`.
const ENTRIES: usize = 10_000;
/// Time between two saves. Origin: `MappingCacheManager`.
const SAVE_PERIOD: Duration = Duration::from_secs(50 * 60);

/// The last applications seen of each interface, in memory and in a file. Interfaces that nobody has mapped are not kept.
pub struct MappingCache {
    memory: Mutex<Lru<Arc<str>, Applications>>,
    file: Option<CacheFile>,
}

impl MappingCache {
    /// Without a file.
    pub fn in_memory() -> Self {
        Self { memory: Mutex::new(Lru::new(ENTRIES)), file: None }
    }

    /// With what `file` remembers: lines `interface=["a","b"]`.
    pub async fn with_file(file: CacheFile) -> Self {
        let mut memory = Lru::new(ENTRIES);
        for (interface, json) in file.read().await {
            let Ok(names) = serde_json::from_str::<Vec<String>>(&json) else { continue };
            let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
            let names: BTreeSet<Arc<str>> = names.map(Arc::from).collect();
            if !names.is_empty() {
                memory.put(Arc::from(interface), Arc::new(names));
            }
        }
        Self { memory: Mutex::new(memory), file: Some(file) }
    }

    /// The name of an application's file, for [`CacheFile::open`].
    pub fn file_name(application: &str) -> String {
        format!(".mapping.{application}")
    }

    /// The applications last seen.
    pub fn get(&self, interface: &str) -> Option<Applications> {
        self.memory.lock().get(interface)
    }

    /// Keeps what was seen, unless it is empty.
    pub fn put(&self, interface: &Arc<str>, applications: &Applications) {
        if !applications.is_empty() {
            self.memory.lock().put(Arc::clone(interface), Arc::clone(applications));
        }
    }

    /// Writes the file, if there is one. Call it when the application ends.
    pub async fn save(&self) {
        let Some(file) = &self.file else { return };
        let entries = self.memory.lock().entries();
        let line = |(interface, names): (Arc<str>, Applications)| {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            Some((interface.to_string(), serde_json::to_string(&names).ok()?))
        };
        file.write(entries.into_iter().filter_map(line).collect()).await;
    }

    /// Saves ten minutes from now and then every fifty, for ever: to be spawned, and aborted in the end.
    pub async fn save_regularly(&self) {
        tokio::time::sleep(FIRST_SAVE).await;
        loop {
            self.save().await;
            tokio::time::sleep(SAVE_PERIOD).await;
        }
    }
}

impl fmt::Debug for MappingCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappingCache").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apps(names: &[&str]) -> Applications {
        Arc::new(names.iter().map(|name| Arc::from(*name)).collect())
    }

    #[tokio::test]
    async fn mappings_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || CacheFile::open(Some(folder.path()), &MappingCache::file_name("demo")).unwrap();
        let cache = MappingCache::with_file(open()).await;
        cache.put(&Arc::from("demo.Foo"), &apps(&["b", "a"]));
        cache.put(&Arc::from("demo.Bar"), &apps(&[]));
        cache.save().await;
        let path = folder.path().join(".mapping.demo.dubbo.cache");
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("\ndemo.Foo=[\"a\",\"b\"]\n"));
        drop(cache);
        let text =
            std::fs::read_to_string(&path).unwrap() + "x=[]\ny=nonsense\nz=[1]\nw=[\" \"]\nv=[\" a \"]\n";
        std::fs::write(&path, text).unwrap();
        let cache = MappingCache::with_file(open()).await;
        assert_eq!(cache.get("demo.Foo"), Some(apps(&["a", "b"])));
        assert_eq!(cache.get("v"), Some(apps(&["a"])));
        for gone in ["demo.Bar", "x", "y", "z", "w"] {
            assert_eq!(cache.get(gone), None, "{gone}");
        }
    }
}
