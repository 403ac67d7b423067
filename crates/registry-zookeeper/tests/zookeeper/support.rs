//! What all tests here need.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeKind, SessionState, Tree, TreeFactory};
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::{BreakableProxy, ZooKeeper};
use tokio::sync::watch;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode};

/// Longer than anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Session timeout of the trees under test: short enough to wait for, long enough for a loaded machine.
pub(crate) const SESSION: Duration = Duration::from_millis(3_000);

pub(crate) type Watched = watch::Receiver<Observation<Option<Children>>>;

/// A server with a short tick, and a proxy before it that only the tree under test uses.
pub(crate) struct World {
    pub(crate) server: ZooKeeper,
    pub(crate) proxy: BreakableProxy,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = ZooKeeper::builder().tick(Duration::from_millis(300)).start().await.unwrap();
        let proxy = BreakableProxy::start(server.address()).await.unwrap();
        Self { server, proxy }
    }

    /// The tree under test, through the proxy, connected.
    pub(crate) async fn tree(&self) -> Arc<dyn Tree> {
        let tree = open(&self.proxy.address(), "");
        connected(&*tree).await;
        tree
    }

    /// Somebody else, without the proxy.
    pub(crate) async fn other(&self) -> Client {
        let connector = Client::connector().with_session_timeout(Duration::from_secs(6));
        timeout(LONG, connector.connect(self.server.address())).await.unwrap().unwrap()
    }

    /// Whether the node exists and belongs to a session that is connected now.
    pub(crate) async fn is_owned_by_a_live_session(&self, other: &Client, path: &str) -> bool {
        let Some(stat) = other.check_stat(path).await.unwrap() else { return false };
        let connections = self.server.four_letter("cons").await.unwrap();
        stat.ephemeral_owner != 0 && connections.contains(&format!("sid=0x{:x},", stat.ephemeral_owner))
    }

    /// The last change that the server has executed.
    pub(crate) async fn last_change(&self) -> String {
        let answer = self.server.four_letter("srvr").await.unwrap();
        answer.lines().find(|line| line.starts_with("Zxid")).unwrap().to_owned()
    }

    /// A counter of the server.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let answer = self.server.four_letter("mntr").await.unwrap();
        let line = answer.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() as u64
    }
}

pub(crate) fn open(servers: &str, more: &str) -> Arc<dyn Tree> {
    let session = SESSION.as_millis();
    let url = Url::parse(&format!("zookeeper://{servers}?session={session}&timeout=20000{more}")).unwrap();
    ZookeeperTreeFactory.open(&url).unwrap()
}

/// Waits for a session and says its epoch.
pub(crate) async fn connected(tree: &dyn Tree) -> u64 {
    match until(&mut tree.session(), |state| matches!(state, SessionState::Connected { .. })).await {
        SessionState::Connected { epoch } => epoch,
        state => unreachable!("{state:?}"),
    }
}

/// Waits until a condition holds, and returns the value for which it did.
pub(crate) async fn until<T: Clone + std::fmt::Debug>(
    receiver: &mut watch::Receiver<T>,
    condition: impl FnMut(&T) -> bool,
) -> T {
    let value = timeout(LONG, receiver.wait_for(condition)).await.map(|value| value.unwrap().clone());
    value.unwrap_or_else(|_| panic!("still {:?}", *receiver.borrow()))
}

/// Waits until exactly these children are known, without trouble.
pub(crate) async fn sees(watched: &mut Watched, names: &[&str]) {
    until(watched, |observation| {
        observation.trouble.is_none() && known(observation).as_deref() == Some(names)
    })
    .await;
}

pub(crate) fn known(observation: &Observation<Option<Children>>) -> Option<Vec<&str>> {
    let children = observation.known.as_ref()?.as_ref()?;
    Some(children.iter().map(|name| &**name).collect())
}

/// Declares an ephemeral node and waits until it is there.
pub(crate) async fn hold(tree: &dyn Tree, path: &str, data: &'static str) {
    tree.ensure(path, Bytes::from_static(data.as_bytes()), NodeKind::Ephemeral);
    tree.settled(path, LONG).await.unwrap();
}

/// Makes a persistent node with its parents.
pub(crate) async fn make(client: &Client, path: &str) {
    client.mkdir(path, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
}

/// Asks until the answer is yes.
pub(crate) async fn eventually(what: &str, mut question: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !question().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(LONG, asking).await.is_ok(), "never: {what}");
}

pub(crate) async fn names(client: &Client, path: &str) -> BTreeSet<String> {
    client.list_children(path).await.unwrap().into_iter().collect()
}
