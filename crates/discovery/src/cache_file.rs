//! Files that caches survive a restart in (`FileCacheStore`).

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Largest file that is read, bytes. Origin: ours.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// When a cache is saved for the first time. Origin: `AbstractCacheManager`.
pub(crate) const FIRST_SAVE: Duration = Duration::from_secs(10 * 60);

/// A cache's file, one `key=value` per line, held by one process at a time.
///
/// The name is `<folder>/<name>.dubbo.cache`. The process that opens it first holds `<file>.lock` until the value is
/// dropped; all others go on without. It is replaced whole, by a rename. What cannot be read is left out, line by line.
#[derive(Debug)]
pub struct CacheFile {
    path: Arc<Path>,
    /// The lock file, locked as long as it is open, which is until the last write is over. One write at a time.
    lock: Arc<Mutex<File>>,
}

impl CacheFile {
    /// The file for `name` in `folder`, or in `<home>/.dubbo`. `None` when another process holds it or it cannot be
    /// used; that is said once. Touches the file system: call it where blocking is allowed.
    pub fn open(folder: Option<&Path>, name: &str) -> Option<Self> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                let Some(home) = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) else {
                    tracing::warn!(name, "no home folder for a cache file: going on without");
                    return None;
                };
                home.join(".dubbo")
            }
        };
        let path = folder.join(format!("{}.dubbo.cache", escape(name)));
        match lock(&folder, &path) {
            Ok(lock) => Some(Self { path: path.into(), lock: Arc::new(Mutex::new(lock)) }),
            Err(TryLockError::WouldBlock) => {
                tracing::info!(file = %path.display(), "cache file is used by another process: going on without");
                None
            }
            Err(TryLockError::Error(error)) => {
                tracing::warn!(file = %path.display(), %error, "cache file cannot be used: going on without");
                None
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entries; none if the file is missing or unreadable.
    pub(crate) async fn read(&self) -> Vec<(String, String)> {
        let path = Arc::clone(&self.path);
        tokio::task::spawn_blocking(move || read(&path)).await.unwrap_or_default()
    }

    /// Replaces the entries.
    pub(crate) async fn write(&self, entries: Vec<(String, String)>) {
        let (path, lock) = (Arc::clone(&self.path), Arc::clone(&self.lock));
        let written = tokio::task::spawn_blocking(move || {
            let _held = lock.lock();
            write(&path, &entries)
        })
        .await;
        if let Err(error) = written.unwrap_or_else(|stopped| Err(io::Error::other(stopped))) {
            tracing::warn!(file = %self.path.display(), %error, "cache file cannot be written");
        }
    }
}

/// What may not stand in a file's name becomes `%` and its code.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for unit in name.encode_utf16() {
        match u8::try_from(unit).map(char::from) {
            Ok(plain @ ('0'..='9' | 'a'..='z' | 'A'..='Z' | '-' | '$' | '.' | '_')) => escaped.push(plain),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(escaped, "%{unit:04x}");
            }
        }
    }
    escaped
}

fn lock(folder: &Path, path: &Path) -> Result<File, TryLockError> {
    std::fs::create_dir_all(folder).map_err(TryLockError::Error)?;
    let lock = beside(path, ".lock");
    let lock = private().create(true).truncate(false).write(true).open(lock).map_err(TryLockError::Error)?;
    lock.try_lock()?;
    Ok(lock)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Metadata may hold tokens: nobody else is to read it.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn read(path: &Path) -> Vec<(String, String)> {
    let mut bytes = Vec::new();
    let outcome = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    match outcome {
        Ok(_) if bytes.len() as u64 <= MAX_FILE_BYTES => entries(&bytes),
        Ok(_) => {
            tracing::warn!(file = %path.display(), "cache file is too large and is ignored");
            Vec::new()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "cache file cannot be read and is ignored");
            Vec::new()
        }
    }
}

/// A value may hold `=`: it starts after the first.
fn entries(bytes: &[u8]) -> Vec<(String, String)> {
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let lines = lines.map(|line| line.trim_end_matches('\r')).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.filter(|(key, _)| !key.is_empty()).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn write(path: &Path, entries: &[(String, String)]) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut text = format!("#Dubbo cache\n#{now}\n");
    let fits = |text: &str| !text.contains(['\n', '\r']);
    for (key, value) in entries {
        if !key.is_empty() && !key.starts_with('#') && !key.contains('=') && fits(key) && fits(value) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key}={value}");
        }
    }
    let temporary = beside(path, &format!(".{}.tmp", std::process::id()));
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
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_java_does() {
        assert_eq!(
            escape(".metadata.demo app.zookeeper.192.0.2.1:2181,h_2-$"),
            ".metadata.demo%0020app.zookeeper.192.0.2.1%003a2181%002ch_2-$"
        );
        assert_eq!(escape("../é"), "..%002f%00e9");
    }

    #[test]
    fn one_process_holds_a_file_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = CacheFile::open(Some(folder.path()), ".metadata.a").unwrap();
        assert!(CacheFile::open(Some(folder.path()), ".metadata.a").is_none());
        assert!(CacheFile::open(Some(folder.path()), ".metadata.b").is_some());
        drop(held);
        assert!(CacheFile::open(Some(folder.path()), ".metadata.a").is_some());
    }

    #[tokio::test]
    async fn entries_survive_and_bad_lines_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::open(Some(folder.path()), ".metadata.a").unwrap();
        assert!(file.read().await.is_empty());
        let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        file.write(vec![
            entry("r1", r#"{"a":"x=y&z=1"}"#),
            entry("bad\nkey", "x"),
            entry("#c", "x"),
            entry("k=k", "x"),
            entry("r3", "a\nb"),
            entry("r2", ""),
        ])
        .await;
        assert_eq!(file.read().await, [entry("r1", r#"{"a":"x=y&z=1"}"#), entry("r2", "")]);
        std::fs::write(file.path(), b"#Dubbo cache\r\n#x\nr1=1=2\r\nno value\n\xff\xfe=1\n=2\nr2=3").unwrap();
        assert_eq!(file.read().await, [entry("r1", "1=2"), entry("r2", "3")]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn writes_that_overlap_leave_the_whole_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(CacheFile::open(Some(folder.path()), "x").unwrap());
        let of = |writer: usize| -> Vec<(String, String)> {
            (0..100).map(|line| (format!("{writer}-{line}"), "v".repeat(writer * 10))).collect()
        };
        for _ in 0..200 {
            let writing: Vec<_> = (1..=6)
                .map(|writer| {
                    let (file, entries) = (Arc::clone(&file), of(writer));
                    tokio::spawn(async move { file.write(entries).await })
                })
                .collect();
            for one in writing {
                one.await.unwrap();
            }
            let read = file.read().await;
            assert!((1..=6).any(|writer| read == of(writer)), "{} lines of several writers", read.len());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_means_no_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(CacheFile::open(Some(file.path()), "x").is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_reading_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = entries(&bytes);
        }

        #[test]
        fn what_is_written_is_read_again(value in "[^\n\r]{0,40}", key in "[^\n\r=#]{1,20}") {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            let written = [(key, value)];
            write(&path, &written).unwrap();
            proptest::prop_assert_eq!(&read(&path)[..], &written[..]);
        }
    }
}
