//! The private server against a hand-made ZooKeeper session: no client crate is needed to see that it works.

#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

use std::time::Duration;

use dubhe_testkit::{BreakableProxy, Ensemble, ZooKeeper};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any answer takes, shorter than a hanging test is a nuisance.
const LONG: Duration = Duration::from_secs(60);

/// A connect request and its answer, by ZooKeeper's protocol: the id of the new session and the timeout it got.
async fn open_session(address: &str, timeout_ms: i32) -> std::io::Result<(TcpStream, String, i32)> {
    let mut body = Vec::new();
    body.extend(0i32.to_be_bytes()); // protocol version
    body.extend(0i64.to_be_bytes()); // last zxid seen
    body.extend(timeout_ms.to_be_bytes());
    body.extend(0i64.to_be_bytes()); // no session yet
    body.extend(16i32.to_be_bytes());
    body.extend([0; 16]); // password
    body.push(0); // not read-only
    let mut stream = TcpStream::connect(address).await?;
    stream.write_i32(i32::try_from(body.len()).unwrap()).await?;
    stream.write_all(&body).await?;
    let length = stream.read_i32().await?;
    let _version = stream.read_i32().await?;
    let granted = stream.read_i32().await?;
    let session = stream.read_i64().await?;
    let mut rest = vec![0; usize::try_from(length).unwrap() - 16];
    stream.read_exact(&mut rest).await?;
    Ok((stream, format!("0x{session:x}"), granted))
}

fn process_exists(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}

#[tokio::test]
async fn serves_on_loopback_and_grants_sessions_within_the_ticks() {
    let zookeeper = ZooKeeper::builder().tick(Duration::from_millis(300)).start().await.unwrap();
    assert_eq!(zookeeper.address(), format!("127.0.0.1:{}", zookeeper.port()));
    let (_short, _, granted) = open_session(zookeeper.address(), 1).await.unwrap();
    assert_eq!(granted, 600);
    let (_long, session, granted) = open_session(zookeeper.address(), 100_000).await.unwrap();
    assert_eq!(granted, 6_000);
    let dump = zookeeper.four_letter("dump").await.unwrap();
    assert!(dump.contains(&session), "{dump}");
    assert!(zookeeper.four_letter("cons").await.unwrap().contains(&session));
    assert!(zookeeper.four_letter("srvr").await.unwrap().contains("Mode: standalone"));
}

#[tokio::test]
async fn keeps_port_and_data_over_a_crash_and_over_a_stop() {
    let zookeeper = ZooKeeper::builder().max_session(Duration::from_secs(90)).start().await.unwrap();
    let address = zookeeper.address().to_owned();
    let (mut stream, session, granted) = open_session(&address, 100_000).await.unwrap();
    assert_eq!(granted, 90_000);

    zookeeper.kill();
    assert!(TcpStream::connect(&address).await.is_err());
    assert!(matches!(timeout(LONG, stream.read(&mut [0; 1])).await.unwrap(), Ok(0) | Err(_)));
    zookeeper.restart().await.unwrap();
    assert_eq!(zookeeper.address(), address);
    assert!(zookeeper.four_letter("dump").await.unwrap().contains(&session));

    zookeeper.stop().await.unwrap();
    assert!(zookeeper.process_id().is_none());
    assert!(TcpStream::connect(&address).await.is_err());
    zookeeper.restart().await.unwrap();
    assert!(zookeeper.four_letter("dump").await.unwrap().contains(&session));
}

#[tokio::test]
async fn a_paused_server_accepts_and_says_nothing_until_it_wakes() {
    let zookeeper = ZooKeeper::start().await.unwrap();
    zookeeper.pause();
    let mut stream = TcpStream::connect(zookeeper.address()).await.unwrap();
    stream.write_all(b"ruok").await.unwrap();
    let mut answer = String::new();
    let silence = timeout(Duration::from_millis(300), stream.read_to_string(&mut answer)).await;
    assert!(silence.is_err(), "a paused server answered {answer:?}");
    zookeeper.resume();
    timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, "imok");
}

#[tokio::test]
async fn dropping_ends_the_process_and_removes_the_data_even_when_paused() {
    let zookeeper = ZooKeeper::start().await.unwrap();
    let (id, log) = (zookeeper.process_id().unwrap(), zookeeper.log());
    assert!(process_exists(id) && log.exists());
    zookeeper.pause();
    drop(zookeeper);
    assert!(!process_exists(id));
    assert!(!log.exists());
}

/// The program of this crate, its input, and the address that it serves.
async fn program() -> (tokio::process::Child, String) {
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_dubhe-zookeeper"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(LONG, lines.next_line()).await.unwrap().unwrap().unwrap();
    let address = line.strip_prefix("READY ").unwrap().to_owned();
    (child, address)
}

/// Returns when nobody listens any more.
async fn gone(address: &str) {
    let gone = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, gone).await.unwrap();
}

#[tokio::test]
async fn a_killed_test_process_leaves_no_server_behind() {
    let (mut child, address) = program().await;
    child.kill().await.unwrap();
    gone(&address).await;
}

#[tokio::test]
async fn the_program_ends_with_its_input() {
    let (mut child, address) = program().await;
    drop(child.stdin.take());
    assert!(timeout(LONG, child.wait()).await.unwrap().unwrap().success());
    gone(&address).await;
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_its_log() {
    let refused = ZooKeeper::builder().setting("tickTime", "soon").start().await.unwrap_err();
    assert!(refused.to_string().contains("zookeeper ended while starting"), "{refused}");
    assert!(refused.to_string().contains("soon"), "{refused}");
}

#[tokio::test]
async fn a_session_lives_through_the_proxy_and_ends_with_a_cut() {
    let zookeeper = ZooKeeper::start().await.unwrap();
    let proxy = BreakableProxy::start(zookeeper.address()).await.unwrap();
    let (mut stream, session, _) = open_session(&proxy.address(), 10_000).await.unwrap();
    assert!(zookeeper.four_letter("dump").await.unwrap().contains(&session));
    proxy.cut().await;
    let error = stream.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn three_servers_elect_another_leader_when_the_leader_dies() {
    let ensemble = Ensemble::start(3).await.unwrap();
    assert_eq!(ensemble.addresses().len(), 3);
    assert_eq!(ensemble.connect_string(), ensemble.addresses().join(","));
    let leader = ensemble.leader().await.unwrap();
    let (_stream, session, _) = open_session(ensemble.address(leader), 10_000).await.unwrap();

    ensemble.kill(leader);
    assert!(!ensemble.running(leader));
    let successor = ensemble.leader().await.unwrap();
    assert_ne!(successor, leader);
    ensemble.restart(leader).await.unwrap();
    let dump = ensemble.four_letter(successor, "dump").await.unwrap();
    assert!(dump.contains(&session), "{dump}");
}
