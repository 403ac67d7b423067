//! A running program of the matrix: its lines, its signals, its end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::folder;

/// How long a program may take to its `READY` line: a Java peer on a loaded machine.
const START: Duration = Duration::from_secs(90);

/// How long a program may take to end after it was asked to.
const END: Duration = Duration::from_secs(40);

/// Pause between two looks at what a program did.
const POLL: Duration = Duration::from_millis(20);

/// Dropping it kills the program.
#[derive(Debug)]
pub(super) struct Program {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    /// Starts `command`; its standard error goes to a log named `name`.
    pub(super) fn start(command: &mut Command, name: &str) -> Result<Self> {
        let errors = File::create(log(name))?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("{name}: cannot start {}", command.get_program().display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().with_context(|| format!("{name}: no output"))?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { name: name.to_owned(), child, input, lines })
    }

    /// Waits for the line that starts with `READY` and returns its words.
    pub(super) fn ready(&self) -> Result<Vec<String>> {
        let line = self.line_with(START, |line| line.starts_with("READY "))?;
        Ok(line.split(' ').map(str::to_owned).collect())
    }

    /// The next line, or nothing when the program has closed its output.
    pub(super) fn next(&self, patience: Duration) -> Result<Option<String>> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("{}: no line within {patience:?}", self.name),
        }
    }

    /// A line that has come already.
    pub(super) fn pending(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// The first line that fits; those before it are lost.
    pub(super) fn line_with(&self, patience: Duration, fits: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.next(left)? {
                Some(line) if fits(&line) => return Ok(line),
                Some(_) => {}
                None => bail!("{}: ended early; its log tells why", self.name),
            }
        }
    }

    /// Waits until the program's log holds `text`.
    pub(super) fn log_with(&self, patience: Duration, text: &str) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if fs::read(log(&self.name)).is_ok_and(|log| String::from_utf8_lossy(&log).contains(text)) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!("{}: no {text:?} in its log within {patience:?}", self.name)
    }

    /// Writes one line to the program.
    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().with_context(|| format!("{}: input is closed", self.name))?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    /// Asks the program to end (SIGTERM).
    pub(super) fn terminate(&self) -> Result<()> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).with_context(|| format!("{}: SIGTERM", self.name))?;
        }
        Ok(())
    }

    /// Asks the program to end (SIGTERM) and waits until it has.
    pub(super) fn stop(mut self) -> Result<ExitStatus> {
        self.terminate()?;
        self.wait(END)
    }

    /// Waits for the program's own end.
    pub(super) fn end(mut self, patience: Duration) -> Result<ExitStatus> {
        self.wait(patience)
    }

    fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        bail!("{}: did not end within {patience:?}", self.name)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a program's standard error goes.
fn log(name: &str) -> PathBuf {
    folder().join("logs").join(format!("{name}.log"))
}
