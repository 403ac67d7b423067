//! The last addresses, kept on disk for a start without a registry.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dubhe_common::{Url, UrlFactory, keys};
use dubhe_core::registry::{Category, ServiceView};
use parking_lot::Mutex;

use crate::listing::Reader;
use crate::memory::MEMORY;
use crate::properties;

/// Changes are gathered for that time before a write. Origin: `AbstractRegistry.DEFAULT_INTERVAL_SAVE_PROPERTIES`.
const WRITE_DELAY: Duration = Duration::from_millis(500);
/// Writes that may fail in a row before the file is given up. Origin: `MAX_RETRY_TIMES_SAVE_PROPERTIES`.
const MAX_FAILURES: u32 = 3;
/// Largest file that is read, bytes. Origin: ours.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// A registry's cache file: what was last seen of each service, used when the registry cannot be reached.
///
/// The path is the registry URL's `file`, else `<home>/.dubbo/dubbo-registry-<application>-<address>.cache`, as in
/// Dubbo. `file.cache=false` turns it off; an in-memory registry has none unless `file` is given. Changes are written
/// half a second later (`save.file=true`: at once), always on a thread for blocking work.
///
/// The format is Dubbo's: properties, the value being URLs with a space between. The keys are service key, `@` and
/// side, so that a provider's subscription and a consumer's of one service do not overwrite each other.
///
/// Several processes may use one file: each write merges its own entries into what is there, under a lock on
/// `<file>.lock`, and replaces the file by a rename. A file that cannot be written after three attempts is given up
/// with one warning; one that cannot be read is ignored.
#[derive(Debug)]
pub struct CacheFile {
    path: PathBuf,
    delay: Duration,
    state: Mutex<State>,
    /// One writer at a time.
    writer: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    changes: HashMap<Arc<str>, Change>,
    /// The file's entries, while they are needed.
    read: Option<Arc<BTreeMap<String, String>>>,
    scheduled: bool,
    failures: u32,
    given_up: bool,
    warned_busy: bool,
}

impl State {
    /// Whether the scheduled write is over: nothing is left, or another process is in the way.
    fn is_done(&mut self) -> bool {
        let done = self.changes.is_empty() || (self.warned_busy && self.failures == 0);
        self.scheduled = !done;
        done
    }
}

#[derive(Debug, Clone)]
struct Change {
    view: Arc<ServiceView>,
    /// An empty list leaves the entry as it is.
    protect: bool,
}

#[derive(Debug)]
enum WriteError {
    /// Another process is writing.
    Busy,
    Io(io::Error),
}

/// Writes the views of one subscription.
#[derive(Debug)]
pub(crate) struct Recorder {
    cache: Arc<CacheFile>,
    key: Arc<str>,
    protect: bool,
}

impl Recorder {
    pub(crate) fn new(cache: &Arc<CacheFile>, consumer: &Url, registry: &Url) -> Self {
        let protect = registry.bool_param(keys::ENABLE_EMPTY_PROTECTION, false);
        Self {
            cache: Arc::clone(cache),
            key: Arc::from(key(consumer)),
            protect: consumer.bool_param(keys::ENABLE_EMPTY_PROTECTION, protect),
        }
    }

    pub(crate) fn record(&self, view: &Arc<ServiceView>) {
        if view.trouble.is_none() && !view.from_cache {
            self.cache.record(&self.key, Change { view: Arc::clone(view), protect: self.protect });
        }
    }
}

impl CacheFile {
    /// The cache file of the registry at `url`, unless it has none.
    pub fn of_registry(url: &Url) -> Option<Arc<Self>> {
        let named = url.param(keys::FILE);
        if !url.bool_param(keys::FILE_CACHE, true) || (named.is_none() && url.protocol() == MEMORY) {
            return None;
        }
        let path = match named {
            Some(path) => PathBuf::from(path),
            None => {
                let Some(home) = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) else {
                    tracing::warn!(
                        "no home folder for the registry cache file: set `file` on the registry address"
                    );
                    return None;
                };
                home.join(".dubbo").join(file_name(url))
            }
        };
        let delay = if url.bool_param(keys::SAVE_FILE, false) { Duration::ZERO } else { WRITE_DELAY };
        Some(Arc::new(Self::at(path, delay)))
    }

    fn at(path: PathBuf, delay: Duration) -> Self {
        Self { path, delay, state: Mutex::default(), writer: tokio::sync::Mutex::new(()) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what waits to be written.
    pub async fn flush(&self) {
        let _turn = self.writer.lock().await;
        self.write_changes().await;
    }

    /// What is remembered of the service that `url` subscribes to.
    pub(crate) async fn view(&self, url: &Url, reader: &Reader, factory: &UrlFactory) -> Option<ServiceView> {
        let entries = self.entries().await?;
        let text = entries.get(&key(url))?;
        let mut lists: HashMap<String, Vec<Url>> = HashMap::new();
        for url in text.split_ascii_whitespace().filter_map(|text| factory.parse(text).ok()) {
            if !url.is_empty_protocol() && reader.matches(&url) {
                lists.entry(url.category().to_owned()).or_default().push(url);
            }
        }
        let mut take = |category: &str| match lists.remove(category) {
            Some(urls) => Category::Known { total: urls.len(), urls: urls.into() },
            None => Category::Unknown,
        };
        let view = ServiceView {
            configurators: take(keys::category::CONFIGURATORS),
            routers: take(keys::category::ROUTERS),
            providers: take(keys::category::PROVIDERS),
            ..ServiceView::default()
        };
        view.providers.urls().is_some().then_some(view)
    }

    async fn entries(&self) -> Option<Arc<BTreeMap<String, String>>> {
        if let Some(read) = &self.state.lock().read {
            return Some(Arc::clone(read));
        }
        let path = self.path.clone();
        let read = Arc::new(tokio::task::spawn_blocking(move || read(&path)).await.ok()?);
        self.state.lock().read = Some(Arc::clone(&read));
        Some(read)
    }

    fn record(self: &Arc<Self>, key: &Arc<str>, change: Change) {
        let mut state = self.state.lock();
        if state.given_up {
            return;
        }
        state.changes.insert(Arc::clone(key), change);
        if std::mem::replace(&mut state.scheduled, true) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(this.delay).await;
            loop {
                {
                    let _turn = this.writer.lock().await;
                    this.write_changes().await;
                }
                if this.state.lock().is_done() {
                    return;
                }
                tokio::time::sleep(this.delay.max(WRITE_DELAY)).await;
            }
        });
    }

    async fn write_changes(&self) {
        let changes = std::mem::take(&mut self.state.lock().changes);
        if changes.is_empty() {
            return;
        }
        let (path, write) = (self.path.clone(), changes.clone());
        let outcome = tokio::task::spawn_blocking(move || write_merged(&path, &write))
            .await
            .unwrap_or_else(|stopped| Err(WriteError::Io(io::Error::other(stopped))));
        let mut state = self.state.lock();
        match outcome {
            Ok(()) => {
                state.failures = 0;
                state.warned_busy = false;
                state.read = None;
            }
            Err(error) => {
                for (key, change) in changes {
                    state.changes.entry(key).or_insert(change);
                }
                state.failures += 1;
                if state.failures >= MAX_FAILURES {
                    self.give_up(&mut state, &error);
                }
            }
        }
    }

    fn give_up(&self, state: &mut State, error: &WriteError) {
        state.failures = 0;
        match error {
            // Who holds the lock may let go: the next change tries again.
            WriteError::Busy if state.warned_busy => {}
            WriteError::Busy => {
                state.warned_busy = true;
                tracing::warn!(file = %self.path.display(), "registry cache file is locked by another process: going on without");
            }
            WriteError::Io(error) => {
                state.given_up = true;
                state.changes = HashMap::new();
                tracing::warn!(file = %self.path.display(), %error, "registry cache file cannot be written: going on without");
            }
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Service key and side: the two kinds of subscription of one service must not meet.
fn key(url: &Url) -> String {
    format!("{}@{}", url.service_key(), url.side().unwrap_or(url.protocol()))
}

fn file_name(url: &Url) -> String {
    let application = url.application().unwrap_or("unknown");
    let name = format!("dubbo-registry-{application}-{}.cache", url.address());
    name.replace([':', '/', '\\', '\0'], "-")
}

/// The file's entries; none if it is missing, too large or cannot be read.
fn read(path: &Path) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    let outcome = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    match outcome {
        Ok(_) if bytes.len() as u64 <= MAX_FILE_BYTES => properties::read(&bytes),
        Ok(_) => {
            tracing::warn!(file = %path.display(), "registry cache file is too large and is ignored");
            BTreeMap::new()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "registry cache file cannot be read and is ignored");
            BTreeMap::new()
        }
    }
}

fn write_merged(path: &Path, changes: &HashMap<Arc<str>, Change>) -> Result<(), WriteError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let lock = private().create(true).truncate(false).write(true).open(beside(".lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(WriteError::Busy),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let mut entries = read(path);
    let before = entries.clone();
    for (key, change) in changes {
        merge(&mut entries, key, change);
    }
    if entries == before && path.exists() {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis().to_string();
    let text = properties::write(&entries, &["Dubbo Registry Cache", &now]);
    let temporary = beside(&format!(".{}.tmp", std::process::id()));
    let written = private()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The error that counts is the first one.
        let _ = std::fs::remove_file(&temporary);
    }
    Ok(written?)
}

/// URLs may hold tokens: nobody else is to read them.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn merge(entries: &mut BTreeMap<String, String>, key: &str, change: &Change) {
    let view = &change.view;
    let providers = view.providers.urls().map_or(&[] as &[Url], |urls| urls);
    if providers.is_empty() {
        if !change.protect && view.providers.urls().is_some() {
            entries.remove(key);
        }
        return;
    }
    let mut texts = Vec::new();
    let rules =
        [(keys::category::CONFIGURATORS, &view.configurators), (keys::category::ROUTERS, &view.routers)];
    for (category, list) in rules {
        for url in list.urls().into_iter().flat_map(|urls| urls.iter()) {
            texts.push(url.with_param_if_absent(keys::CATEGORY, category).to_full_string());
        }
    }
    texts.extend(providers.iter().map(Url::to_full_string));
    texts.retain(|text| !text.contains(char::is_whitespace));
    entries.insert(key.to_owned(), texts.join(" "));
}

#[cfg(test)]
mod tests;
