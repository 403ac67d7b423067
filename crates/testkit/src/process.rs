//! One server process: its configuration on disk, its start, its signals and its certain end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::installation::Installation;

/// How long a start or a graceful stop may take before it counts as failed: a cold Java on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Pause between two questions to a server that is coming up.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Lines of the server's log that an error shows.
const LOG_TAIL: usize = 15;

/// What stays the same over restarts: folder, port, Java options, main class.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) folder: PathBuf,
    pub(crate) address: String,
    pub(crate) main_class: &'static str,
    pub(crate) properties: Vec<(String, String)>,
}

impl Launch {
    /// Writes `zoo.cfg` and the log configuration into the folder.
    pub(crate) fn write(&self, zoo_cfg: &str) -> Result<()> {
        fs::create_dir_all(self.folder.join("data"))?;
        fs::write(self.folder.join("zoo.cfg"), zoo_cfg)?;
        // Whichever logger the class path holds: warnings only, to the standard error stream.
        fs::write(self.folder.join("simplelogger.properties"), SIMPLE_LOGGER)?;
        fs::write(self.folder.join("logback.xml"), LOGBACK)?;
        fs::write(self.folder.join("log4j.properties"), LOG4J)?;
        Ok(())
    }

    /// Starts the process and returns without waiting for it to serve.
    pub(crate) fn spawn(&self) -> Result<Process> {
        let installation = Installation::find()?;
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut child = Command::new(installation.java())
            // A small heap and no optimising compiler: up in half a second, and many fit beside each other.
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"])
            // Page cache survives SIGKILL, so nothing a test can do needs fsync; kilobytes, not 64 MiB, per log.
            .args(["-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024"])
            .args(self.properties.iter().map(|(name, value)| format!("-D{name}={value}")))
            .arg("-cp")
            .arg(installation.class_path(&self.folder)?)
            .arg(self.main_class)
            .arg(self.folder.join("zoo.cfg"))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", installation.java().display()))?;
        match watch_over(&child) {
            Ok(guard) => Ok(Process { child, guard }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log.txt")
    }

    /// The end of the log, for errors.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    guard: Child,
}

impl Process {
    /// How the process ended, if it did. Its number means nothing then: the value must be dropped.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends SIGSTOP and returns when every thread has stopped: the kernel keeps the sockets open, nobody answers.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let start = std::time::Instant::now();
        while !self.is_stopped() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends SIGTERM (and wakes a paused process, so that it can obey) and waits for the end.
    pub(crate) async fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.resume();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("zookeeper did not end within {PATIENCE:?} after SIGTERM");
            }
            sleep(POLL).await;
        }
    }

    /// The process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the kernel shows every thread as stopped (T) or ended (X, Z).
    fn is_stopped(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return true };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses and may contain some.
            stat.rsplit(") ").next().is_none_or(|rest| !rest.starts_with(['R', 'S', 'D']))
        })
    }

    fn signal(&self, signal: Signal) {
        // The child is not reaped before `Drop` or a successful `try_wait`, so the number is still ours; a failure
        // means that it is a zombie already.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard goes first: it must not outlive the number that it was told to kill.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a shell that kills `child` when this process ends in whatever way: its standard input is a pipe whose other
/// end only we hold.
fn watch_over(child: &Child) -> Result<Child> {
    Command::new("sh")
        .args(["-c", r#"read -r _; kill -9 "$1""#, "guard", &child.id().to_string()])
        .current_dir(Path::new("/"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the shell that guards the server")
}

const SIMPLE_LOGGER: &str = "org.slf4j.simpleLogger.defaultLogLevel=warn\n";

const LOGBACK: &str = r#"<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d %level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="ERR"/></root>
</configuration>
"#;

const LOG4J: &str = "log4j.rootLogger=WARN, ERR
log4j.appender.ERR=org.apache.log4j.ConsoleAppender
log4j.appender.ERR.target=System.err
log4j.appender.ERR.layout=org.apache.log4j.PatternLayout
log4j.appender.ERR.layout.ConversionPattern=%d %p %c{1} %m%n
";
