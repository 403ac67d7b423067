//! Several ZooKeeper servers with a quorum.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::four_letter;
use crate::port::Port;
use crate::process::{PATIENCE, POLL};
use crate::zookeeper::{Builder, Member, ZooKeeper};

/// Unit of time of an ensemble: short, so that a new leader is found soon.
const TICK: Duration = Duration::from_millis(500);

/// Several real ZooKeeper servers on 127.0.0.1 that form one quorum. Members count from 0.
///
/// With three members any one may be down; with two down the third refuses clients. Dropping the value kills them all.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<Member>,
    _ports: Vec<[Port; 3]>,
    _folder: TempDir,
}

impl Ensemble {
    /// Starts `size` servers with `tickTime` 500 ms and returns when all of them serve clients.
    ///
    /// # Errors
    /// As [`ZooKeeper::start`].
    pub async fn start(size: usize) -> Result<Self> {
        Self::start_with(ZooKeeper::builder().tick(TICK), size).await
    }

    /// As [`Self::start`], with settings.
    ///
    /// # Errors
    /// As [`ZooKeeper::start`].
    pub async fn start_with(builder: Builder, size: usize) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("dubhe-ensemble-").tempdir()?;
        let mut ports = Vec::new();
        for _ in 0..size {
            ports.push([Port::lease()?, Port::lease()?, Port::lease()?]);
        }
        let mut quorum = "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n".to_owned();
        for (index, [_, data, election]) in ports.iter().enumerate() {
            let (id, data, election) = (index + 1, data.number(), election.number());
            quorum.push_str(&format!("server.{id}=127.0.0.1:{data}:{election}\n"));
        }
        let mut members = Vec::new();
        for (index, [client, ..]) in ports.iter().enumerate() {
            let home = folder.path().join((index + 1).to_string());
            let main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
            let member = builder.member(&home, client.socket_address(), main_class, &quorum)?;
            fs::write(home.join("data/myid"), (index + 1).to_string())?;
            members.push(member);
        }
        for member in &members {
            member.spawn()?;
        }
        for member in &members {
            member.serving().await?;
        }
        Ok(Self { members, _ports: ports, _folder: folder })
    }

    /// The members' client addresses, `127.0.0.1:port` each.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.launch.address.clone()).collect()
    }

    /// The client address of one member.
    pub fn address(&self, index: usize) -> &str {
        &self.members[index].launch.address
    }

    /// All addresses in the form that ZooKeeper clients take: `host:port,host:port`.
    pub fn connect_string(&self) -> String {
        self.addresses().join(",")
    }

    /// The index of the leader among the running members, after waiting for an election if need be.
    ///
    /// # Errors
    /// When none of them leads in the time that a start may take.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            for index in 0..self.members.len() {
                let leads = |answer: String| answer.contains("Mode: leader");
                if self.running(index) && self.four_letter(index, "srvr").await.is_ok_and(leads) {
                    return Ok(index);
                }
            }
            sleep(POLL).await;
        }
        bail!("no member of the ensemble leads")
    }

    /// Whether a member's process was started and not ended.
    pub fn running(&self, index: usize) -> bool {
        self.members[index].running().is_some()
    }

    /// Kills one member (SIGKILL).
    pub fn kill(&self, index: usize) {
        self.members[index].kill();
    }

    /// Stops one member gracefully (SIGTERM).
    ///
    /// # Errors
    /// As [`ZooKeeper::stop`].
    pub async fn stop(&self, index: usize) -> Result<()> {
        self.members[index].stop().await
    }

    /// Freezes one member (SIGSTOP).
    pub fn pause(&self, index: usize) {
        self.members[index].pause();
    }

    /// Wakes a paused member (SIGCONT).
    pub fn resume(&self, index: usize) {
        self.members[index].resume();
    }

    /// Starts one member again, after killing it if it runs, and returns when it serves clients. That takes a quorum:
    /// see [`Self::restart_all`] when too many are down.
    ///
    /// # Errors
    /// As [`ZooKeeper::start`].
    pub async fn restart(&self, index: usize) -> Result<()> {
        self.members[index].kill();
        self.members[index].spawn()?;
        self.members[index].serving().await
    }

    /// Starts all members again, after killing those that run, and returns when all serve clients.
    ///
    /// # Errors
    /// As [`ZooKeeper::start`].
    pub async fn restart_all(&self) -> Result<()> {
        self.members.iter().for_each(Member::kill);
        for member in &self.members {
            member.spawn()?;
        }
        for member in &self.members {
            member.serving().await?;
        }
        Ok(())
    }

    /// Sends a four-letter word to one member; see [`ZooKeeper::four_letter`].
    ///
    /// # Errors
    /// As [`ZooKeeper::four_letter`].
    pub async fn four_letter(&self, index: usize, word: &str) -> Result<String> {
        four_letter::ask(self.address(index), word).await.with_context(|| format!("member {index}"))
    }
}
