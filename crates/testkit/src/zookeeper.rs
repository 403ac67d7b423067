//! One private ZooKeeper server.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::four_letter;
use crate::port::Port;
use crate::process::{Launch, PATIENCE, POLL, Process};

/// The server's unit of time when a test does not care. Milliseconds in `zoo.cfg`. Origin: `tickTime` of ZooKeeper's
/// own sample configuration.
const DEFAULT_TICK: Duration = Duration::from_millis(2_000);

/// What runs a server without a quorum.
const STANDALONE: &str = "org.apache.zookeeper.server.ZooKeeperServerMain";

/// How long a server that is starting may take to answer before it is asked again.
const QUESTION: Duration = Duration::from_millis(500);

/// Starts that may fail because somebody outside of this crate took the port meanwhile.
const TRIES: usize = 3;

/// A real standalone ZooKeeper of one's own: loopback only, free port, data in a temporary folder.
///
/// All methods take `&self`, so an `Arc<ZooKeeper>` can be broken from anywhere. Dropping it kills the server, paused
/// or not, and removes the data.
#[derive(Debug)]
pub struct ZooKeeper {
    member: Member,
    address: SocketAddrV4,
    _port: Option<Port>,
    _folder: TempDir,
}

impl ZooKeeper {
    /// Starts a server with the defaults of [`Builder`] and returns when it answers.
    ///
    /// # Errors
    /// When Java or ZooKeeper is missing (the text says how to install them), or when the server does not come up
    /// (the text shows the end of its log).
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Starts a server after some settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `127.0.0.1:port` unless [`Builder::listen`] says otherwise; the same for the whole life of this value.
    pub fn address(&self) -> &str {
        &self.member.launch.address
    }

    /// The port of [`Self::address`].
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The process number, while the server runs.
    pub fn process_id(&self) -> Option<u32> {
        self.member.running().as_ref().map(Process::id)
    }

    /// The file into which the server logs its warnings.
    pub fn log(&self) -> PathBuf {
        self.member.launch.log()
    }

    /// Ends the server as an operator would (SIGTERM) and returns when it is gone. Data stay for [`Self::restart`].
    /// Does nothing when it does not run.
    ///
    /// # Errors
    /// When the server ignores the signal; it is killed then.
    pub async fn stop(&self) -> Result<()> {
        self.member.stop().await
    }

    /// Ends the server as a crash would (SIGKILL) and returns when it is gone. Data stay for [`Self::restart`].
    pub fn kill(&self) {
        self.member.kill();
    }

    /// Freezes the server (SIGSTOP): connections stay open, nothing answers. Its clock goes on, so sessions may be
    /// over when it wakes. Does nothing when it does not run.
    pub fn pause(&self) {
        self.member.pause();
    }

    /// Wakes a paused server (SIGCONT).
    pub fn resume(&self) {
        self.member.resume();
    }

    /// Starts the server again on the same port with the same data, after killing it if it still runs, and returns
    /// when it answers. Sessions and their ephemeral nodes are back, with a full session timeout before them.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&self) -> Result<()> {
        self.member.kill();
        self.member.spawn()?;
        self.member.serving().await
    }

    /// Sends a four-letter word and returns the answer: `srvr` (mode, last zxid), `dump` (sessions and their
    /// ephemeral nodes), `wchp` / `wchc` (watches by path / by session), `cons` (connections), `mntr` (counters).
    ///
    /// # Errors
    /// When the server cannot be reached or does not answer within ten seconds.
    pub async fn four_letter(&self, word: &str) -> Result<String> {
        four_letter::ask(self.address(), word).await
    }
}

/// Settings of a [`ZooKeeper`]: `tickTime` 2 s, session timeouts between 2 and 20 ticks.
#[derive(Debug, Clone)]
pub struct Builder {
    tick: Duration,
    min_session: Option<Duration>,
    max_session: Option<Duration>,
    listen: Option<SocketAddrV4>,
    properties: Vec<(String, String)>,
    settings: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            tick: DEFAULT_TICK,
            min_session: None,
            max_session: None,
            listen: None,
            properties: Vec::new(),
            settings: Vec::new(),
        }
    }
}

impl Builder {
    /// The server's unit of time, in whole milliseconds (default 2 s). It checks for expired sessions once per tick
    /// and grants session timeouts of 2 to 20 ticks: expiry tests want a short one.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The shortest session timeout that the server grants (default 2 ticks).
    pub fn min_session(mut self, timeout: Duration) -> Self {
        self.min_session = Some(timeout);
        self
    }

    /// The longest session timeout that the server grants (default 20 ticks).
    pub fn max_session(mut self, timeout: Duration) -> Self {
        self.max_session = Some(timeout);
        self
    }

    /// Where to listen instead of a free port of 127.0.0.1. For a run inside a network namespace of its own, whose
    /// members must not see a loopback address.
    pub fn listen(mut self, address: SocketAddrV4) -> Self {
        self.listen = Some(address);
        self
    }

    /// A Java system property of the server, such as `jute.maxbuffer`.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// A further line of `zoo.cfg`.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Starts the server and returns when it answers.
    ///
    /// # Errors
    /// As [`ZooKeeper::start`].
    pub async fn start(self) -> Result<ZooKeeper> {
        let mut tries = 0;
        loop {
            let port = if self.listen.is_none() { Some(Port::lease()?) } else { None };
            let address = self.listen.or_else(|| port.as_ref().map(Port::socket_address));
            let address = address.context("neither a port nor an address to listen on")?;
            let folder = tempfile::Builder::new().prefix("dubhe-zookeeper-").tempdir()?;
            let member = self.member(folder.path(), address, STANDALONE, "")?;
            member.spawn()?;
            tries += 1;
            match member.serving().await {
                Ok(()) => return Ok(ZooKeeper { member, address, _port: port, _folder: folder }),
                Err(error)
                    if port.is_some() && tries < TRIES && error.to_string().contains("BindException") => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Prepares a server in `folder` without starting it. `more` is added to `zoo.cfg`.
    pub(crate) fn member(
        &self,
        folder: &Path,
        address: SocketAddrV4,
        main_class: &'static str,
        more: &str,
    ) -> Result<Member> {
        let launch = Launch {
            folder: folder.to_owned(),
            address: address.to_string(),
            main_class,
            properties: self.properties.clone(),
        };
        launch.write(&self.zoo_cfg(&folder.join("data"), address, more))?;
        Ok(Member { launch, process: Mutex::new(None) })
    }

    fn zoo_cfg(&self, data: &Path, address: SocketAddrV4, more: &str) -> String {
        let mut lines = vec![
            format!("tickTime={}", self.tick.as_millis()),
            format!("dataDir={}", data.display()),
            format!("clientPort={}", address.port()),
            format!("clientPortAddress={}", address.ip()),
            "maxClientCnxns=0".to_owned(),
            "admin.enableServer=false".to_owned(),
            "4lw.commands.whitelist=*".to_owned(),
        ];
        lines.extend(self.min_session.map(|timeout| format!("minSessionTimeout={}", timeout.as_millis())));
        lines.extend(self.max_session.map(|timeout| format!("maxSessionTimeout={}", timeout.as_millis())));
        lines.extend(self.settings.iter().map(|(name, value)| format!("{name}={value}")));
        lines.push(more.to_owned());
        lines.join("\n")
    }
}

/// A server that may run or not; also one of an ensemble.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) launch: Launch,
    process: Mutex<Option<Process>>,
}

impl Member {
    pub(crate) fn spawn(&self) -> Result<()> {
        let process = self.launch.spawn()?;
        *self.running() = Some(process);
        Ok(())
    }

    /// Returns once the server serves clients.
    pub(crate) async fn serving(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = match &mut *self.running() {
                Some(process) => process.ended()?,
                None => bail!("zookeeper was ended while it was starting"),
            };
            if let Some(status) = ended {
                self.kill();
                bail!("zookeeper ended while starting ({status}):\n{}", self.launch.log_tail());
            }
            // A question that meets the server in the middle of its start is at times never answered.
            let question = timeout(QUESTION, four_letter::ask(&self.launch.address, "srvr"));
            let answer = question.await.ok().and_then(Result::ok).unwrap_or_default();
            if answer.contains("Mode: ") {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("zookeeper did not serve within {PATIENCE:?}:\n{}", self.launch.log_tail());
            }
            sleep(POLL).await;
        }
    }

    pub(crate) async fn stop(&self) -> Result<()> {
        let process = self.running().take();
        match process {
            Some(process) => process.stop().await.map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn kill(&self) {
        let process = self.running().take();
        drop(process);
    }

    pub(crate) fn pause(&self) {
        if let Some(process) = &*self.running() {
            process.pause();
        }
    }

    pub(crate) fn resume(&self) {
        if let Some(process) = &*self.running() {
            process.resume();
        }
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
