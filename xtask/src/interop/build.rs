//! Builds both sides, outside of the namespace, where there is a network.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result};

use super::peer::Version;
use crate::workspace;

/// The Maven project.
pub(super) fn java_folder() -> PathBuf {
    workspace::root().join("interop/java")
}

/// Compiles the Java programs of one release and fetches what they need, unless that was done for the same sources.
pub(super) fn java(version: Version) -> Result<()> {
    let folder = java_folder();
    let output = folder.join("target").join(version.profile());
    let mark = output.join("built-from");
    let sources = fingerprint(&folder).context("reading interop/java")?;
    if fs::read_to_string(&mark).is_ok_and(|built| built == sources) && is_complete(&output) {
        return Ok(());
    }
    println!("interop: building the peers of Dubbo {}", version.number());
    let mut maven = Command::new("mvn");
    maven.current_dir(&folder).args([
        "-q",
        "-B",
        "-Dstyle.color=never",
        "-P",
        version.profile(),
        "process-classes",
    ]);
    workspace::run(&mut maven)?;
    fs::write(mark, sources)?;
    Ok(())
}

/// Compiles the program that runs ZooKeeper and, if asked, the Rust peer and the examples.
pub(super) fn rust(with_peer: bool) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["build", "--quiet", "--package", "dubhe-testkit", "--bin", "dubhe-zookeeper"]);
    if with_peer {
        command.args(["--package", "dubhe-interop-peer", "--bin", "dubhe-interop-peer"]);
        command.args(["--package", "dubhe-examples", "--bin", "provider", "--bin", "consumer"]);
    }
    workspace::run(&mut command)
}

/// A program that [`rust`] built.
pub(super) fn program(name: &str) -> PathBuf {
    workspace::target().join("debug").join(name)
}

/// Whether classes and all jars are still there.
fn is_complete(output: &Path) -> bool {
    let class_path = fs::read_to_string(output.join("cp.txt")).unwrap_or_default();
    let mut jars = class_path.trim().split(':').filter(|jar| !jar.is_empty()).peekable();
    output.join("classes").is_dir() && jars.peek().is_some() && jars.all(|jar| Path::new(jar).is_file())
}

/// A number that changes with the sources.
fn fingerprint(folder: &Path) -> io::Result<String> {
    let mut files = vec![folder.join("pom.xml")];
    collect(&folder.join("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write(&fs::read(&file)?);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
