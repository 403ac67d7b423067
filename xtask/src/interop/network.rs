//! A network namespace for the run.
//!
//! `unshare` makes it, with a mount namespace (for `/etc/hosts`) and a process namespace (so that every program ends
//! with the run, however the run ends). It belongs to the processes in it and has no name: nothing is left to remove,
//! and two runs at once do not meet. Who is not root gets it inside a user namespace.

use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{tools, workspace};

/// The address that Java registers, and a second one. Reserved for documentation (RFC 5737).
pub(super) const FIRST: &str = "192.0.2.10";
pub(super) const SECOND: &str = "192.0.2.11";

/// Runs this program again with `arguments`, inside a new namespace.
pub(super) fn enter(arguments: &[String]) -> Result<()> {
    let program = std::env::current_exe()?;
    let mut command = unshare()?;
    // The other half ends when its standard input does: when this process ends in whatever way.
    let mut child = command.arg(program).args(arguments).stdin(Stdio::piped()).spawn()?;
    let input = child.stdin.take();
    let status = child.wait()?;
    drop(input);
    if !status.success() {
        bail!("the interop matrix is not green");
    }
    Ok(())
}

/// Ends this process, and with it all others of the namespace, when its standard input ends.
pub(super) fn end_with_input() {
    std::thread::spawn(|| {
        let mut ignored = [0; 64];
        while stdin().read(&mut ignored).is_ok_and(|length| length > 0) {}
        std::process::exit(1);
    });
}

/// Inside: brings up the loopback device and one pair of devices with both addresses, and makes names resolve without
/// a name server. Dummy devices are not available everywhere; pairs are.
pub(super) fn set_up(folder: &Path) -> Result<()> {
    ip("link set lo up")?;
    ip("link add v0 type veth peer name v1")?;
    ip("link set v0 up")?;
    ip("link set v1 up")?;
    for address in [FIRST, SECOND] {
        ip(&format!("addr add {address}/24 dev v0"))?;
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let hosts = format!("127.0.0.1 localhost\n{FIRST} peer {}\n{SECOND} peer2\n", host.trim());
    replace(Path::new("/etc/hosts"), &folder.join("hosts"), &hosts)?;
    replace(Path::new("/etc/resolv.conf"), &folder.join("resolv.conf"), "")
}

/// `unshare` with the first set of options that this machine allows.
fn unshare() -> Result<Command> {
    let user: &[&str] = if tools::is_root() { &[] } else { &["--user", "--map-root-user"] };
    let network = ["--net", "--mount", "--fork", "--kill-child"];
    let processes = ["--pid", "--mount-proc"];
    for more in [&processes[..], &[]] {
        let options: Vec<_> = user.iter().chain(&network).chain(more).copied().collect();
        let mut probe = Command::new("unshare");
        probe.args(&options).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if probe.status().context("unshare is missing: apt-get install util-linux")?.success() {
            let mut command = Command::new("unshare");
            command.args(options);
            return Ok(command);
        }
    }
    bail!(
        "this machine does not allow a network namespace, which the interop matrix needs: run it as root \
         (a container needs the capability SYS_ADMIN), or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
    )
}

fn ip(arguments: &str) -> Result<()> {
    let program = tools::find("ip").context("ip is missing: apt-get install iproute2")?;
    workspace::run(Command::new(program).args(arguments.split(' ')))
        .context("setting up the network of the run")
}

/// Lets `path` show `content`, in this mount namespace only.
fn replace(path: &Path, file: &Path, content: &str) -> Result<()> {
    let Ok(target) = fs::canonicalize(path) else { return Ok(()) };
    fs::write(file, content)?;
    let file: PathBuf = fs::canonicalize(file)?;
    workspace::run(Command::new("mount").arg("--bind").arg(file).arg(target))
}
