//! Several servers.

use bytes::Bytes;
use dubhe_core::tree::{NodeKind, SessionState};
use dubhe_testkit::{Ensemble, Port};
use zookeeper_client::Client;

use crate::support::{LONG, connected, hold, make, open, sees, until};

/// C22
#[tokio::test]
async fn watches_and_nodes_move_along_when_the_connected_member_dies() {
    let ensemble = Ensemble::start(3).await.unwrap();
    let addresses = ensemble.addresses();
    let tree = open(&addresses[0], &format!("&backup={},{}", addresses[1], addresses[2]));
    let epoch = connected(&*tree).await;
    hold(&*tree, "/p/own", "x").await;
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["own"]).await;

    let mut serving = None;
    for index in 0..3 {
        if ensemble.four_letter(index, "cons").await.unwrap().contains("sid=") {
            serving = Some(index);
        }
    }
    let serving = serving.expect("one member has the session");
    let mut session = tree.session();
    ensemble.kill(serving);
    until(&mut session, |state| *state == SessionState::Suspended).await;
    let rest = addresses.iter().enumerate().filter(|(index, _)| *index != serving);
    let rest: Vec<_> = rest.map(|(_, address)| address.clone()).collect();
    let other = Client::connector().connect(&rest.join(",")).await.unwrap();
    make(&other, "/p/b").await;
    sees(&mut watched, &["b", "own"]).await;
    assert_eq!(connected(&*tree).await, epoch, "the session went along");
    make(&other, "/p/c").await;
    sees(&mut watched, &["b", "c", "own"]).await;
    tree.ensure("/p/own", Bytes::from_static(b"y"), NodeKind::Ephemeral);
    tree.settled("/p/own", LONG).await.unwrap();
}

#[tokio::test]
async fn a_dead_host_in_the_address_does_not_matter() {
    let world = crate::support::World::start().await;
    let dead = Port::lease().unwrap();
    let tree = open(&dead.address(), &format!("&backup={}", world.server.address()));
    hold(&*tree, "/p/own", "x").await;
}
