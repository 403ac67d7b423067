//! The proxy before an echo server.

#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

use std::io::ErrorKind;
use std::time::Duration;

use dubhe_testkit::BreakableProxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

/// An echo server that half-closes when its client does; ends with the test's runtime.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = split(stream);
                let _ = copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

async fn proxy() -> BreakableProxy {
    BreakableProxy::start(echo().await).await.unwrap()
}

async fn connect(proxy: &BreakableProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

async fn say(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    timeout(LONG, stream.read_exact(&mut answer)).await.unwrap()?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn passes_bytes_both_ways_and_ends_in_order() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    assert_eq!(say(&mut stream, "hello").await.unwrap(), "hello");
    let sent = vec![7; 3_000_000];
    let (mut reader, mut writer) = stream.split();
    let write = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let (read, ()) = tokio::join!(reader.read_to_end(&mut received), write);
    read.unwrap();
    assert!(received == sent);
    timeout(LONG, proxy.wait_for_connections(0)).await.unwrap();
    assert_eq!(proxy.bytes_to_target(), 3_000_005);
    assert_eq!(proxy.bytes_to_client(), 3_000_005);
}

#[tokio::test]
async fn counts_open_connections_their_peak_and_all_that_came() {
    let proxy = proxy().await;
    let mut first = connect(&proxy).await;
    let mut second = connect(&proxy).await;
    say(&mut first, "1").await.unwrap();
    say(&mut second, "2").await.unwrap();
    assert_eq!((proxy.connections(), proxy.peak_connections(), proxy.accepted_total()), (2, 2, 2));
    drop(first);
    timeout(LONG, proxy.wait_for_connections(1)).await.unwrap();
    let _third = connect(&proxy).await;
    timeout(LONG, proxy.wait_for_accepted(3)).await.unwrap();
    assert_eq!(proxy.peak_connections(), 2);
}

#[tokio::test]
async fn cut_resets_what_is_open_and_welcomes_what_comes() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    proxy.cut().await;
    assert_eq!(proxy.connections(), 0);
    assert_eq!(stream.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut next = connect(&proxy).await;
    assert_eq!(say(&mut next, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn refuse_turns_new_connections_away_and_leaves_old_ones_alone() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(say(&mut stream, "still").await.unwrap(), "still");
    proxy.accept().await.unwrap();
    let mut next = connect(&proxy).await;
    assert_eq!(say(&mut next, "back").await.unwrap(), "back");
}

#[tokio::test]
async fn blackhole_swallows_without_a_reset_and_spares_later_connections() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    proxy.blackhole(true);
    stream.write_all(b"lost").await.unwrap();
    assert!(timeout(SHORT, stream.read_u8()).await.is_err());
    proxy.blackhole(false);
    stream.write_all(b"lost too").await.unwrap();
    assert!(timeout(SHORT, stream.read_u8()).await.is_err());
    let mut next = connect(&proxy).await;
    assert_eq!(say(&mut next, "found").await.unwrap(), "found");
    assert_eq!(proxy.connections(), 2);
    drop(stream);
    timeout(LONG, proxy.wait_for_connections(1)).await.unwrap();
}

#[tokio::test]
async fn hold_keeps_bytes_and_delivers_them_in_order_afterwards() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    proxy.hold(true);
    stream.write_all(b"one ").await.unwrap();
    assert!(timeout(SHORT, stream.read_u8()).await.is_err());
    stream.write_all(b"two").await.unwrap();
    proxy.hold(false);
    let mut answer = [0; 7];
    timeout(LONG, stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"one two");
}

#[tokio::test]
async fn delay_adds_up_over_both_directions() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    proxy.delay(Duration::from_millis(80));
    let start = Instant::now();
    say(&mut stream, "slow").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(160), "{:?}", start.elapsed());
    proxy.delay_to_client(Duration::ZERO);
    let start = Instant::now();
    say(&mut stream, "half").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(80), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_target_that_refuses_shows_as_a_reset_and_is_counted() {
    let closed = dubhe_testkit::Port::lease().unwrap();
    let proxy = BreakableProxy::start(closed.address()).await.unwrap();
    let mut stream = connect(&proxy).await;
    assert_eq!(stream.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.accepted_total(), 1);
}

#[tokio::test]
async fn dropping_the_proxy_resets_its_connections() {
    let proxy = proxy().await;
    let mut stream = connect(&proxy).await;
    say(&mut stream, "x").await.unwrap();
    drop(proxy);
    let error = timeout(LONG, stream.read_u8()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
