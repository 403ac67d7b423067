//! The owner of one session: connects, follows the session's state, and starts again for as long as the tree lives.

use std::sync::Arc;
use std::time::Duration;

use dubhe_core::tree::SessionState;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use zookeeper_client::{Client, Error, SessionInfo, SessionState as ClientState, StateWatcher};

use crate::backoff::Backoff;
use crate::link::{Link, Round, Up};
use crate::parents::Parents;
use crate::settings::Settings;
use crate::store::{guarded, is_death};

/// Between tries to connect. The client tries each server once per try, and ours is the only loop around it.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Before the first try after a lost session: that is when whole fleets come at once.
const AFTER_LOSS: Duration = Duration::from_millis(200);

/// Our last sessions whose nodes we still take for ours: older ones are long gone from the server.
const REMEMBERED: usize = 16;

/// How long an ended session may take to say so.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// Owns the only client of a session.
#[derive(Debug)]
pub(crate) struct Owner {
    settings: Arc<Settings>,
    link: watch::Sender<Link>,
    state: watch::Sender<SessionState>,
    ending: watch::Receiver<bool>,
    parents: Arc<Parents>,
    former: Option<SessionInfo>,
    sessions: Vec<i64>,
    at: Round,
}

impl Owner {
    pub(crate) fn new(
        settings: Arc<Settings>,
        state: watch::Sender<SessionState>,
        ending: watch::Receiver<bool>,
    ) -> (Self, watch::Receiver<Link>) {
        let (link, receiver) = watch::channel(Link::Connecting(None));
        let at = Round { epoch: 0, round: 0 };
        let (parents, former, sessions) = (Arc::default(), None, Vec::new());
        let owner = Self { settings, link, state, ending, parents, former, sessions, at };
        (owner, receiver)
    }

    /// Runs until `ending` says so (or its sender is gone), then ends the session.
    pub(crate) async fn run(mut self) {
        let mut ending = self.ending.clone();
        loop {
            let client = tokio::select! {
                biased;
                () = wanted_end(&mut ending) => break,
                client = self.connect() => client,
            };
            if self.serve(client).await {
                break;
            }
        }
        self.publish(Link::Closed);
    }

    /// Tries until it succeeds. Dropping the future closes the socket that it may be opening.
    async fn connect(&mut self) -> Client {
        let address = self.settings.address.clone();
        if self.at.epoch > 0 {
            sleep(AFTER_LOSS.mul_f64(fastrand::f64())).await;
        }
        let mut failures = 0;
        loop {
            match self.try_connect().await {
                Ok(client) => return client,
                Err(Error::SessionExpired) if self.former.is_some() => {
                    tracing::info!(registry.addr = %address, "session is over, a new one is opened");
                    self.former = None;
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::warn!(registry.addr = %address, %error, "registry cannot be reached, trying on");
                    } else {
                        tracing::debug!(registry.addr = %address, %error, attempt = failures, "connecting failed");
                    }
                    let reason = format!("connecting failed: {error}");
                    self.publish(Link::Connecting(Some(reason.into())));
                    sleep(RECONNECT.delay(failures)).await;
                }
            }
        }
    }

    /// One try with each server. The client may have given the former session up (it does so by its own clock), so that
    /// session is asked for first: with a server that was only unreachable it still holds our nodes.
    async fn try_connect(&self) -> Result<Client, Error> {
        let mut connector =
            Client::connector().with_session_timeout(self.settings.session).with_fail_eagerly();
        if let Some(login) = &self.settings.login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        if let Some(former) = &self.former {
            connector = connector.with_session(former.clone());
        }
        #[cfg(test)]
        let doomed = self.settings.doomed.lock().take();
        #[cfg(test)]
        if let Some(runtime) = doomed {
            let servers = self.settings.servers.clone();
            let client = runtime.spawn(async move { connector.connect(&servers).await });
            return client.await.map_err(|error| Error::UnexpectedError(error.to_string()))?;
        }
        guarded(connector.connect(&self.settings.servers)).await
    }

    /// Follows a client to its end; true when that end is wanted.
    async fn serve(&mut self, client: Client) -> bool {
        let session = client.session_id();
        if self.former.as_ref().map(SessionInfo::id) != Some(session) {
            self.at.epoch += 1;
            self.sessions.push(session.0);
            if self.sessions.len() > REMEMBERED {
                self.sessions.remove(0);
            }
        }
        self.former = Some(client.session().clone());
        let address = self.settings.address.clone();
        tracing::info!(registry.addr = %address, session = %session, epoch = self.at.epoch, "registry connected");
        // A server may lag behind what a former client has seen; requests are executed in order, so all reads come after.
        drop(client.sync("/"));
        let suspicion = Arc::new(Notify::new());
        let up = Up {
            session: session.0,
            sessions: self.sessions.as_slice().into(),
            at: self.at,
            settings: Arc::clone(&self.settings),
            parents: Arc::clone(&self.parents),
            suspicion: Arc::clone(&suspicion),
            client,
        };
        let mut states = up.client.state_watcher();
        let mut state = states.peek_state();
        let mut ending = self.ending.clone();
        let reason = loop {
            match state {
                ClientState::SyncConnected => {
                    self.at.round += 1;
                    self.publish(Link::Up(Arc::new(Up { at: self.at, ..up.clone() })));
                }
                ClientState::Disconnected | ClientState::ConnectedReadOnly => {
                    tracing::warn!(registry.addr = %address, "registry connection is lost");
                    self.publish(Link::Suspended);
                }
                ClientState::AuthFailed => break "authentication failed: check user and password".to_owned(),
                ClientState::Expired | ClientState::Closed => break format!("the session ended ({state})"),
            }
            state = tokio::select! {
                biased;
                () = wanted_end(&mut ending) => {
                    self.publish(Link::Closed);
                    drop(up);
                    farewell(states).await;
                    return true;
                }
                state = states.changed() => state,
                reason = death(&up, state, &suspicion) => break reason,
            };
        };
        tracing::warn!(registry.addr = %address, reason, "registry session is lost");
        self.publish(Link::Connecting(Some(reason.into())));
        false
    }

    fn publish(&self, link: Link) {
        let state = match &link {
            Link::Connecting(_) => SessionState::Connecting,
            Link::Up(up) => SessionState::Connected { epoch: up.at.epoch },
            Link::Suspended => SessionState::Suspended,
            Link::Closed => SessionState::Closed,
        };
        self.link.send_replace(link);
        // The tree says `Closed` when all of its sessions are.
        if state != SessionState::Closed {
            self.state.send_if_modified(|old| std::mem::replace(old, state) != state);
        }
    }
}

/// Resolves when the tree is closed or dropped.
async fn wanted_end(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Resolves when the client's own task is gone, or deaf: then no state event will ever come. Asks now and then, and at
/// once on suspicion; a client that merely has no connection is not asked, it knows by itself when its session is over.
async fn death(up: &Up, state: ClientState, suspicion: &Notify) -> String {
    let session = up.client.session_timeout().max(Duration::from_millis(100));
    if state != ClientState::SyncConnected {
        suspicion.notified().await;
    }
    loop {
        let next = Instant::now() + session / 2;
        match timeout(session * 2, guarded(up.client.check_stat("/"))).await {
            Err(_) => return "the client does not answer".to_owned(),
            Ok(Err(error)) if is_death(&error) => return format!("the client died ({error})"),
            Ok(_) => {}
        }
        tokio::select! {
            () = sleep_until(next) => {}
            () = suspicion.notified() => {}
        }
    }
}

/// Waits until a client whose last handle is gone has ended its session.
async fn farewell(mut states: StateWatcher) {
    let ended = async { while !states.changed().await.is_terminated() {} };
    if timeout(FAREWELL, ended).await.is_err() {
        tracing::debug!("session did not end in time, it will time out");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dubhe_common::Url;
    use dubhe_core::tree::{NodeKind, Tree};
    use dubhe_testkit::{BreakableProxy, ZooKeeper};
    use tokio::runtime::Builder;

    use super::*;
    use crate::tree::ZookeeperTree;

    const LONG: Duration = Duration::from_secs(60);

    /// C106
    #[tokio::test]
    async fn a_client_whose_task_has_died_is_noticed_and_replaced() {
        let server = ZooKeeper::builder().tick(Duration::from_millis(200)).start().await.unwrap();
        let proxy = BreakableProxy::start(server.address()).await.unwrap();
        let url = format!("zookeeper://{}?session=2000", proxy.address());
        let settings = Settings::from_url(&Url::parse(&url).unwrap()).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        *settings.doomed.lock() = Some(runtime.handle().clone());
        let tree = ZookeeperTree::open(settings).unwrap();
        tree.ensure("/p/own", Bytes::new(), NodeKind::Ephemeral);
        tree.settled("/p/own", LONG).await.unwrap();
        let mut watched = tree.children("/p", false);
        timeout(LONG, watched.wait_for(|one| one.known.is_some())).await.unwrap().unwrap();

        // The client's task ends as if it had panicked: no state event, no answer, a dead socket.
        runtime.shutdown_background();
        let mut session = tree.session();
        let lost = session.wait_for(|state| *state == SessionState::Connecting);
        timeout(LONG, lost).await.unwrap().unwrap();
        let back = session.wait_for(|state| matches!(state, SessionState::Connected { .. }));
        timeout(LONG, back).await.unwrap().unwrap();
        tree.settled("/p/own", LONG).await.unwrap();
        tree.ensure("/p/second", Bytes::new(), NodeKind::Ephemeral);
        let both = watched.wait_for(|one| {
            one.known.as_ref().is_some_and(|known| known.as_ref().is_some_and(|children| children.len() == 2))
        });
        timeout(LONG, both).await.unwrap().unwrap();
        assert_eq!(proxy.peak_connections(), 1);
    }
}
