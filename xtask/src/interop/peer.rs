//! How each program of the matrix is started, by language and role.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::{build, folder};

/// A release of Apache Dubbo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    #[value(name = "2.7.23")]
    V27,
    #[value(name = "3.1.11")]
    V31,
    #[value(name = "3.3.6")]
    V33,
}

impl Version {
    /// As Maven Central names it.
    pub(super) fn number(self) -> &'static str {
        match self {
            Self::V27 => "2.7.23",
            Self::V31 => "3.1.11",
            Self::V33 => "3.3.6",
        }
    }

    /// Whether it knows application-level discovery as it is today.
    pub(super) fn has_instances(self) -> bool {
        self != Self::V27
    }

    /// The Maven profile of `interop/java`.
    pub(super) fn profile(self) -> &'static str {
        match self {
            Self::V27 => "d27",
            Self::V31 => "d31",
            Self::V33 => "d33",
        }
    }
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Provider,
    Consumer,
    Load,
    /// A consumer that calls when told to.
    Find,
    /// Java only.
    Rules,
}

/// Who is at one end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Rust,
    Java(Version),
}

impl Peer {
    /// The command of a program, with a home folder `home` of its own and without its options.
    pub(super) fn command(self, role: Role, home: &str) -> Result<Command> {
        let home = folder().join("homes").join(home);
        fs::create_dir_all(&home)?;
        let mut command = match self {
            Self::Rust => {
                let mut command = Command::new(build::program("dubhe-interop-peer"));
                command.arg(match role {
                    Role::Provider => "provider",
                    Role::Consumer => "consumer",
                    Role::Load => "load",
                    Role::Find => "find",
                    Role::Rules => "rules",
                });
                command
            }
            Self::Java(version) => {
                let java = build::java_folder();
                let output = java.join("target").join(version.profile());
                let class_path = fs::read_to_string(output.join("cp.txt")).context("reading cp.txt")?;
                let mut command = Command::new("java");
                command
                    .arg(format!("@{}", java.join("jvm.args").display()))
                    .arg(format!("-Duser.home={}", home.display()))
                    .arg("-cp")
                    .arg(format!("{}:{}", output.join("classes").display(), class_path.trim()))
                    .arg(match role {
                        Role::Provider => "dev.dubhe.interop.Provider",
                        Role::Consumer => "dev.dubhe.interop.Consumer",
                        Role::Load => "dev.dubhe.interop.LoadConsumer",
                        Role::Find => "dev.dubhe.interop.Finder",
                        Role::Rules => "dev.dubhe.interop.Rules",
                    });
                command
            }
        };
        command.env("HOME", &home).current_dir(&home);
        Ok(command)
    }

    /// For file names.
    pub(super) fn name(self) -> String {
        match self {
            Self::Rust => "rust".to_owned(),
            Self::Java(version) => version.number().to_owned(),
        }
    }
}
