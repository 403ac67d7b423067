//! Where this machine keeps Java and ZooKeeper.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The environment variable that names an unpacked ZooKeeper release.
const HOME: &str = "ZOOKEEPER_HOME";

/// Where Debian's package `zookeeper` and those it depends on put their jars.
const DEBIAN_JARS: &str = "/usr/share/java";

/// What the server needs of [`DEBIAN_JARS`].
const DEBIAN_NAMES: [&str; 12] = [
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "slf4j-simple",
    "netty-all",
    "netty-handler",
    "netty-buffer",
    "netty-common",
    "netty-transport",
    "netty-codec",
    "snappy-java",
    "metrics-core",
];

const HOW_TO_INSTALL: &str = "install both with `apt-get install zookeeper default-jre-headless`, \
     or install Java and set ZOOKEEPER_HOME to an unpacked ZooKeeper release (3.5 or later)";

/// A Java program and the class path of a ZooKeeper server.
///
/// Java is `$JAVA_HOME/bin/java`, or else the first `java` of `PATH`. ZooKeeper is the release in `$ZOOKEEPER_HOME`,
/// or else Debian's package.
#[derive(Debug, Clone)]
pub struct Installation {
    java: PathBuf,
    class_path: Vec<PathBuf>,
}

impl Installation {
    /// Looks for Java and ZooKeeper.
    ///
    /// # Errors
    /// When one is missing; the text names the command that installs it.
    pub fn find() -> Result<Self> {
        Self::find_with(&|name| env::var_os(name), Path::new(DEBIAN_JARS))
    }

    /// The Java program.
    pub fn java(&self) -> &Path {
        &self.java
    }

    /// The class path of a server whose log configuration lies in `conf`, in Java's form.
    pub fn class_path(&self, conf: &Path) -> Result<OsString> {
        let entries = std::iter::once(conf).chain(self.class_path.iter().map(PathBuf::as_path));
        env::join_paths(entries).context("a path with ':' cannot be part of a class path")
    }

    fn find_with(variable: &dyn Fn(&str) -> Option<OsString>, jars: &Path) -> Result<Self> {
        let java = find_java(variable).with_context(|| format!("java was not found: {HOW_TO_INSTALL}"))?;
        let class_path = match variable(HOME).filter(|home| !home.is_empty()) {
            Some(home) => release_jars(Path::new(&home))?,
            None => debian_jars(jars)?,
        };
        Ok(Self { java, class_path })
    }
}

fn find_java(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = variable("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let path = variable("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|folder| folder.join("java"));
    home.into_iter().chain(in_path).find(|java| java.is_file())
}

fn debian_jars(folder: &Path) -> Result<Vec<PathBuf>> {
    let jars: Vec<_> = DEBIAN_NAMES.iter().map(|name| folder.join(format!("{name}.jar"))).collect();
    match jars.iter().find(|jar| !jar.is_file()) {
        Some(missing) => {
            bail!("zookeeper was not found ({} is missing): {HOW_TO_INSTALL}", missing.display())
        }
        None => Ok(jars),
    }
}

fn release_jars(home: &Path) -> Result<Vec<PathBuf>> {
    let lib = home.join("lib");
    let mut jars = Vec::new();
    for folder in [home, &lib] {
        let Ok(entries) = folder.read_dir() else { continue };
        jars.extend(entries.flatten().map(|e| e.path()).filter(|p| p.extension() == Some(OsStr::new("jar"))));
    }
    jars.sort();
    let is_server = |jar: &PathBuf| {
        let name = jar.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("zookeeper-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            || name == "zookeeper.jar"
    };
    if !jars.iter().any(is_server) {
        bail!("{HOME}={} holds no zookeeper-VERSION.jar: {HOW_TO_INSTALL}", home.display());
    }
    Ok(jars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(variables: &[(&str, &Path)], jars: &Path, names: &str) {
        let lookup = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_os_str().to_owned())
        };
        let text = Installation::find_with(&lookup, jars).unwrap_err().to_string();
        assert!(text.contains(names), "{text}");
        assert!(text.contains("apt-get install zookeeper default-jre-headless"), "{text}");
        assert!(text.contains("ZOOKEEPER_HOME"), "{text}");
    }

    #[test]
    fn missing_java_names_the_install_command() {
        let empty = tempfile::tempdir().unwrap();
        check_refused(&[("PATH", empty.path())], Path::new(DEBIAN_JARS), "java was not found");
    }

    #[test]
    fn missing_zookeeper_names_the_install_command() {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("java"), "").unwrap();
        check_refused(&[("PATH", bin.path())], bin.path(), "zookeeper was not found");
    }

    #[test]
    fn a_home_without_zookeeper_names_itself() {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("java"), "").unwrap();
        let variables = [("PATH", bin.path()), (HOME, bin.path())];
        check_refused(&variables, Path::new(DEBIAN_JARS), &bin.path().display().to_string());
    }

    #[test]
    fn an_unpacked_release_is_preferred_to_the_package() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("lib")).unwrap();
        std::fs::write(home.path().join("java"), "").unwrap();
        std::fs::write(home.path().join("lib/zookeeper-3.9.5.jar"), "").unwrap();
        let lookup = |_: &str| Some(home.path().as_os_str().to_owned());
        let found = Installation::find_with(&lookup, Path::new("/nowhere")).unwrap();
        assert_eq!(found.class_path, [home.path().join("lib/zookeeper-3.9.5.jar")]);
    }
}
