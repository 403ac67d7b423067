//! Metadata by revision, in memory and across restarts (`MetaCacheManager`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::metadata::MetadataInfo;
use parking_lot::Mutex;

use crate::cache_file::{CacheFile, FIRST_SAVE};
use crate::lru::Lru;

/// Entries kept in memory. Origin: `dubbo.meta.cache.entrySize`.
const ENTRIES: usize = 100;
/// Time between two saves. Origin: `AbstractCacheManager`.
const SAVE_PERIOD: Duration = Duration::from_secs(60 * 60);

/// What is known of revisions. Only what has services is known: absence and emptiness are never kept, in memory or in
/// the file.
///
/// Revisions are opaque texts of their applications, and so kept by both.
pub struct MetadataCache {
    memory: Mutex<Lru<Key, Arc<MetadataInfo>>>,
    file: Option<CacheFile>,
}

type Key = (Arc<str>, Arc<str>);

impl MetadataCache {
    /// Without a file.
    pub fn in_memory() -> Self {
        Self { memory: Mutex::new(Lru::new(ENTRIES)), file: None }
    }

    /// With what `file` remembers. Nothing is written unless [`MetadataCache::save`] or
    /// [`MetadataCache::save_regularly`] runs.
    pub async fn with_file(file: CacheFile) -> Self {
        let mut memory = Lru::new(ENTRIES);
        for (revision, json) in file.read().await {
            let Ok(info) = serde_json::from_str::<MetadataInfo>(&json) else { continue };
            if let Some(app) = info.app.as_deref().filter(|_| is_complete(&info)) {
                memory.put((Arc::from(app), Arc::from(revision)), Arc::new(info));
            }
        }
        Self { memory: Mutex::new(memory), file: Some(file) }
    }

    /// The name of the file for an application and its registry, for [`CacheFile::open`]. `prefix`: the user's
    /// `dubbo.meta.cache.fileName`, default `.metadata`.
    pub fn file_name(prefix: Option<&str>, application: &str, registry: &Url) -> String {
        let prefix = prefix.unwrap_or(".metadata");
        format!("{prefix}.{application}.{}.{}", registry.protocol(), registry.backup_addresses(0).join(","))
    }

    /// What is known of a revision.
    pub fn get(&self, application: &str, revision: &str) -> Option<Arc<MetadataInfo>> {
        self.memory.lock().get(&(Arc::from(application), Arc::from(revision)))
    }

    /// Keeps what was learned of a revision, unless it has no services.
    pub fn put(&self, application: &str, revision: &str, info: &Arc<MetadataInfo>) {
        if is_complete(info) {
            self.memory.lock().put((Arc::from(application), Arc::from(revision)), Arc::clone(info));
        }
    }

    /// Writes the file, if there is one. Call it when the application ends.
    pub async fn save(&self) {
        let Some(file) = &self.file else { return };
        let entries = self.memory.lock().entries();
        let lines = entries.into_iter().filter_map(|((app, revision), info)| {
            // Reading finds the application in the metadata.
            let named = info.app.as_deref() == Some(&*app);
            let info = if named {
                info
            } else {
                Arc::new(MetadataInfo { app: Some(app.to_string()), ..(*info).clone() })
            };
            Some((revision.to_string(), serde_json::to_string(&*info).ok()?))
        });
        file.write(lines.collect()).await;
    }

    /// Saves ten minutes from now and then every hour, for ever: to be spawned, and aborted in the end.
    pub async fn save_regularly(&self) {
        tokio::time::sleep(FIRST_SAVE).await;
        loop {
            self.save().await;
            tokio::time::sleep(SAVE_PERIOD).await;
        }
    }
}

fn is_complete(info: &MetadataInfo) -> bool {
    !info.services.is_empty()
}

impl fmt::Debug for MetadataCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataCache").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    fn known() -> Arc<MetadataInfo> {
        let mut info = recorded::captures().remove(1).metadata_info;
        let service = info.services.values_mut().next().unwrap();
        service.params.insert("rule".to_owned(), "a=b&c=d".to_owned());
        Arc::new(info)
    }

    // C18
    #[tokio::test]
    async fn what_is_known_survives_a_restart_and_absence_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let open = || CacheFile::open(Some(folder.path()), ".metadata.demo").unwrap();
        let cache = MetadataCache::with_file(open()).await;
        let (info, empty) = (known(), Arc::new(MetadataInfo::default()));
        cache.put("demo-provider", "r1", &info);
        cache.put("demo-provider", "r2", &empty);
        cache.put("alias", "r3", &info);
        assert_eq!(cache.get("demo-provider", "r2"), None);
        cache.save().await;
        drop(cache);
        let cache = MetadataCache::with_file(open()).await;
        assert_eq!(cache.get("demo-provider", "r1"), Some(info));
        assert_eq!(cache.get("demo-provider", "r2"), None);
        assert_eq!(cache.get("other", "r1"), None);
        assert!(cache.get("alias", "r3").is_some());
    }

    // C18
    #[tokio::test]
    async fn a_file_that_holds_empty_metadata_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::open(Some(folder.path()), "x").unwrap();
        let good = serde_json::to_string(&*known()).unwrap();
        let lines = [
            "#Dubbo cache".to_owned(),
            r#"r1={"app":"demo-provider","revision":"r1","services":{}}"#.to_owned(),
            r#"r2={"app":"demo-provider"}"#.to_owned(),
            "r3=null".to_owned(),
            "r4={\"app\":\"demo-prov".to_owned(),
            format!("r5={good}"),
        ];
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let cache = MetadataCache::with_file(file).await;
        for revision in ["r1", "r2", "r3", "r4"] {
            assert_eq!(cache.get("demo-provider", revision), None);
        }
        assert_eq!(cache.get("demo-provider", "r5"), Some(known()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_written_after_ten_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::open(Some(folder.path()), "x").unwrap();
        let path = file.path().to_owned();
        let cache = Arc::new(MetadataCache::with_file(file).await);
        cache.put("a", "r", &known());
        let saving = tokio::spawn({
            let cache = Arc::clone(&cache);
            async move { cache.save_regularly().await }
        });
        tokio::task::yield_now().await;
        assert!(!path.exists());
        tokio::time::sleep(Duration::from_secs(601)).await;
        while !path.exists() {
            tokio::task::yield_now().await;
        }
        saving.abort();
    }

    #[test]
    fn the_file_is_named_as_in_java() {
        let registry = Url::parse("zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181").unwrap();
        assert_eq!(
            MetadataCache::file_name(None, "demo", &registry),
            ".metadata.demo.zookeeper.192.0.2.1:2181,192.0.2.2:2181"
        );
    }
}
