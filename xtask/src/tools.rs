//! What a machine must have beside Rust, and how it gets there.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace;

/// A program or library of the machine that tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Runs ZooKeeper.
    Java,
    /// The server that registry tests start.
    ZooKeeper,
    /// Compiles the Java peers of the interop matrix.
    JavaCompiler,
    /// Fetches and builds the Java peers.
    Maven,
    /// `ip`, for the network of the interop matrix.
    Ip,
}

/// What `cargo test` needs.
pub(crate) const FOR_TESTS: [Tool; 2] = [Tool::Java, Tool::ZooKeeper];

/// What the interop matrix needs.
pub(crate) const FOR_INTEROP: [Tool; 5] =
    [Tool::Java, Tool::ZooKeeper, Tool::JavaCompiler, Tool::Maven, Tool::Ip];

impl Tool {
    /// The Debian package that brings it.
    fn package(self) -> &'static str {
        match self {
            Self::Java => "default-jre-headless",
            Self::ZooKeeper => "zookeeper",
            Self::JavaCompiler => "default-jdk-headless",
            Self::Maven => "maven",
            Self::Ip => "iproute2",
        }
    }

    fn is_here(self) -> bool {
        match self {
            Self::Java => program("java"),
            Self::ZooKeeper => {
                env::var_os("ZOOKEEPER_HOME").is_some_and(|home| !home.is_empty())
                    || Path::new("/usr/share/java/zookeeper.jar").exists()
            }
            Self::JavaCompiler => program("javac"),
            Self::Maven => program("mvn"),
            Self::Ip => program("ip"),
        }
    }
}

/// Installs what is missing where that is possible (Debian, as root).
///
/// # Errors
/// Elsewhere, when something is missing: the text names the command that installs it.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing = missing_packages(tools, Tool::is_here);
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!(
        "apt-get update && apt-get install {} (for ZooKeeper, an unpacked release named by ZOOKEEPER_HOME does too)",
        missing.join(" ")
    );
    if !is_root() || !program("apt-get") {
        bail!("not installed: {}; install it as root with: {by_hand}", missing.join(", "));
    }
    println!("installing {}", missing.join(", "));
    workspace::run(Command::new("apt-get").args(["-q", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["-q", "install", "-y", "--no-install-recommends"]).args(&missing);
    workspace::run(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    let still = missing_packages(tools, Tool::is_here);
    if !still.is_empty() {
        bail!("still not there after the installation: {}; try: {by_hand}", still.join(", "));
    }
    Ok(())
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn missing_packages(tools: &[Tool], is_here: impl Fn(Tool) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<_> =
        tools.iter().filter(|tool| !is_here(**tool)).map(|tool| tool.package()).collect();
    // A JDK contains a JRE.
    if packages.contains(&Tool::JavaCompiler.package()) {
        packages.retain(|package| *package != Tool::Java.package());
    }
    packages
}

fn program(name: &str) -> bool {
    find(name).is_some()
}

/// A program of `PATH`, or of the folders where Debian keeps what only root needs.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jdk_is_installed_instead_of_a_jre() {
        let packages = missing_packages(&FOR_INTEROP, |_| false);
        assert_eq!(packages, ["zookeeper", "default-jdk-headless", "maven", "iproute2"]);
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        assert_eq!(missing_packages(&FOR_TESTS, |tool| tool == Tool::Java), ["zookeeper"]);
        assert!(missing_packages(&FOR_INTEROP, |_| true).is_empty());
    }
}
