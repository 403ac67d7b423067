//! Who shares connections, and when they are closed.

use dubhe_core::exchange::{ConnectionState, RequestFrame, ResponseFrame, status};
use dubhe_core::protocol::Protocol;
use dubhe_core::serialize::Serialization;

use super::echo_service::{Body, World, encode, say, url};
use super::tagged::TAGGED;

/// Lets tasks in the background run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

// C28
#[tokio::test]
async fn a_change_of_parameters_keeps_the_connection_and_calls_in_between_succeed() {
    let world = World::new();
    world.net.answer(|_| {
        let body = encode(&mut |writer| writer.write_int(2));
        Ok(ResponseFrame { status: status::OK, serialization: 2, body })
    });
    let mut invoker = world.protocol.refer(&url(1, "timeout=1000&timestamp=1")).unwrap();
    for change in 0..1_000 {
        let next = world
            .protocol
            .refer(&url(1, &format!("timeout={}&timestamp={change}", 1_000 + change % 2)))
            .unwrap();
        invoker.invoke(say("x")).await.unwrap();
        invoker = next;
        invoker.invoke(say("x")).await.unwrap();
    }
    settle().await;
    assert_eq!((world.net.clients().len(), world.net.open()), (1, 1));
}

// C91
#[tokio::test]
async fn the_last_invoker_that_goes_closes_the_connection() {
    let world = World::new();
    let one = world.protocol.refer(&url(1, "group=a")).unwrap();
    let two = world.protocol.refer(&url(1, "group=b")).unwrap();
    assert_eq!(world.net.clients().len(), 1);
    drop(one);
    settle().await;
    assert_eq!(world.net.open(), 1);
    drop(two);
    settle().await;
    assert_eq!(world.net.open(), 0);
    let _again = world.protocol.refer(&url(1, "group=a")).unwrap();
    assert_eq!((world.net.clients().len(), world.net.open()), (2, 1));
}

// C91
#[tokio::test]
async fn an_invoker_may_be_dropped_outside_of_the_runtime() {
    let world = World::new();
    let invoker = world.protocol.refer(&url(1, "")).unwrap();
    std::thread::spawn(move || drop(invoker)).join().unwrap();
    settle().await;
    assert_eq!(world.net.open(), 0);
}

#[tokio::test]
async fn other_addresses_and_other_connection_settings_get_connections_of_their_own() {
    let world = World::new();
    let same = ["group=a", "version=2.0.0", "timeout=9", "heartbeat=60000", "payload=8388608", "weight=5"];
    let other = [
        "heartbeat=1000",
        "payload=1",
        "lazy=true",
        "connect.timeout=10",
        "reconnect=false",
        "shareconnections=2",
    ];
    let mut held: Vec<_> = same.iter().map(|one| world.protocol.refer(&url(1, one)).unwrap()).collect();
    assert_eq!(world.net.clients().len(), 1);
    held.extend(other.iter().map(|one| world.protocol.refer(&url(1, one)).unwrap()));
    assert_eq!(world.net.clients().len(), 1 + 5 + 2);
    held.push(world.protocol.refer(&url(2, "")).unwrap());
    assert_eq!(world.net.clients().last().unwrap().endpoint.port, 2);
}

#[tokio::test]
async fn connections_of_ones_own_are_not_shared_and_are_used_in_turn() {
    let world = World::new();
    world.net.answer(|_| Ok(ResponseFrame { status: 100, serialization: 2, body: bytes::Bytes::new() }));
    let own = world.protocol.refer(&url(1, "connections=3")).unwrap();
    let _other = world.protocol.refer(&url(1, "connections=3")).unwrap();
    assert_eq!(world.net.clients().len(), 6);
    let states: Vec<_> = world.net.clients()[..3].iter().map(|one| one.state.clone()).collect();
    states[0].send_replace(ConnectionState::Disconnected);
    states[1].send_replace(ConnectionState::ReadOnly);
    assert!(own.is_available());
    states[2].send_replace(ConnectionState::Disconnected);
    assert!(!own.is_available());
    let absurd = world.protocol.refer(&url(1, "connections=100000")).unwrap();
    assert!(world.net.clients().len() <= 6 + 64, "a registry cannot ask for any number");
    drop((own, absurd));
    settle().await;
    assert_eq!(world.net.open(), 3);
}

#[tokio::test]
async fn settings_of_a_connection_come_from_the_url_and_nonsense_has_its_default() {
    let world = World::new();
    let parameters =
        "heartbeat=1000&heartbeat.timeout=1500&payload=-1&connect.timeout=junk&reconnect=false&lazy=true";
    let _held = world.protocol.refer(&url(1, parameters)).unwrap();
    let options = world.net.clients()[0].options.clone();
    assert_eq!((options.heartbeat.as_millis(), options.heartbeat_timeout.as_millis()), (1_000, 2_000));
    assert_eq!((options.payload, options.connect_timeout.as_millis()), (0, 3_000));
    assert_eq!((options.lazy, options.reconnect), (true, false));
}

// C29
#[tokio::test]
async fn news_of_a_provider_makes_a_lost_connection_be_tried_at_once() {
    let world = World::new();
    let _one = world.protocol.refer(&url(1, "timestamp=1")).unwrap();
    let _restarted = world.protocol.refer(&url(1, "timestamp=2")).unwrap();
    assert_eq!(*world.net.clients()[0].retries.lock(), 1);
}

#[tokio::test]
async fn a_provider_that_calls_back_gets_an_answer() {
    let world = World::new();
    let _held = world.protocol.refer(&url(1, "")).unwrap();
    let callbacks = world.net.clients()[0].callbacks.clone();
    let address = ([127, 0, 0, 1], 1).into();
    let body = Body::default().bytes();
    let request = RequestFrame { two_way: true, serialization: 2, body, peer: address, local: address };
    let reply = callbacks.handle(request).await;
    assert_eq!(reply.status, 70);
    let body = reply.frame.freeze().slice(dubhe_core::exchange::HEADROOM..);
    let text = TAGGED.reader(body).read_str().unwrap().unwrap();
    assert!(text.ends_with("this consumer offers no callback service"), "{text}");
}
