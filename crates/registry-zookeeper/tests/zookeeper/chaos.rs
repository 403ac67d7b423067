//! Everything at once.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::tree::NodeKind;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::support::{LONG, World, eventually, known, make, names, open};

/// How long servers and connections are broken.
const CHAOS: Duration = Duration::from_secs(20);

/// C106
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_random_faults_with_hundreds_of_watches_coming_and_going() {
    let world = World::start().await;
    let tree = open(&world.proxy.address(), "");
    let mut random = fastrand::Rng::with_seed(106);
    let mut watched: Vec<_> = (0..300).map(|index| tree.children(&format!("/p/{index}"), true)).collect();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let end = Instant::now() + CHAOS;
    let mut faults = 0;
    let mut next_fault = Instant::now() + Duration::from_millis(500);
    let mut broken = false;
    while Instant::now() < end {
        for _ in 0..20 {
            let index = random.usize(..300);
            watched[index] = tree.children(&format!("/p/{}", random.usize(..300)), true);
            let name = random.usize(..100).to_string();
            let path = format!("/own/{name}");
            if wanted.remove(&name) {
                tree.withdraw(&path);
            } else {
                wanted.insert(name);
                tree.ensure(&path, Bytes::from(random.u64(..).to_string()), NodeKind::Ephemeral);
            }
        }
        if Instant::now() >= next_fault {
            if broken {
                world.server.resume();
                world.proxy.hold(false);
                world.proxy.blackhole(false);
                world.proxy.accept().await.unwrap();
                world.proxy.cut().await;
                if world.server.process_id().is_none() {
                    world.server.restart().await.unwrap();
                }
                next_fault = Instant::now() + Duration::from_millis(random.u64(200..1_000));
            } else {
                faults += 1;
                match random.u8(..6) {
                    0 => world.server.kill(),
                    1 => world.server.pause(),
                    2 => world.proxy.cut().await,
                    3 => world.proxy.hold(true),
                    4 => world.proxy.blackhole(true),
                    _ => world.proxy.refuse().await,
                }
                // Now and then for longer than a session lasts.
                next_fault =
                    Instant::now() + Duration::from_millis(random.u64(100..2_500) * random.u64(1..3));
            }
            broken = !broken;
        }
        let sockets = sockets_to(world.proxy.socket_address().port());
        assert!(sockets <= 1, "{sockets} sockets at once");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(faults >= 4, "{faults} faults");
    world.server.resume();
    world.proxy.hold(false);
    world.proxy.blackhole(false);
    world.proxy.accept().await.unwrap();
    world.proxy.cut().await;
    if world.server.process_id().is_none() {
        world.server.restart().await.unwrap();
    }

    // What is wanted is what is there, and it is ours.
    for name in 0..100 {
        tree.settled(&format!("/own/{name}"), LONG).await.unwrap();
    }
    let other = world.other().await;
    assert_eq!(names(&other, "/own").await, wanted);
    for name in &wanted {
        assert!(world.is_owned_by_a_live_session(&other, &format!("/own/{name}")).await, "{name}");
    }
    // Every watch is alive.
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for index in 0..300 {
        make(&other, &format!("/p/{index}")).await;
        other.create(&format!("/p/{index}/end"), b"", &options).await.unwrap();
    }
    for one in &mut watched {
        let seen =
            one.wait_for(|one| one.trouble.is_none() && known(one).is_some_and(|names| names == ["end"]));
        assert!(timeout(LONG, seen).await.is_ok(), "a watch is dead");
    }
    leaves_nothing(world.proxy.socket_address().port(), &other, watched, tree).await;
}

/// Sockets that are connected or connecting to a local port. The proxy's own count may be one too high for a moment: the
/// client closes one and opens the next before the proxy has seen either. The kernel's table is not read in one step
/// either, so several readings must agree.
fn sockets_to(port: u16) -> usize {
    let remote = format!(":{port:04X}");
    let open = |line: &&str| {
        let mut fields = line.split_whitespace().skip(2);
        let (address, state) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        address.ends_with(&remote) && ["01", "02"].contains(&state)
    };
    let reading = || fs::read_to_string("/proc/self/net/tcp").unwrap().lines().filter(open).count();
    (0..5).map(|_| reading()).min().unwrap_or_default()
}

async fn leaves_nothing(
    port: u16,
    other: &Client,
    watched: Vec<crate::support::Watched>,
    tree: std::sync::Arc<dyn dubhe_core::tree::Tree>,
) {
    drop(watched);
    tree.close().await;
    assert!(names(other, "/own").await.is_empty());
    let tasks = Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 12, "{tasks} tasks are left");
    eventually("its sockets are closed", async || sockets_to(port) == 0).await;
}
