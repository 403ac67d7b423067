//! Requests served, refused, drained.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::end::{Asked, Asking, Far, dial, reply, soon};
use super::pipe::Pipes;
use crate::frame::Header;
use crate::{ExchangeServer, Exchanger, HeaderExchanger, ServerOptions};

const SECOND: Duration = Duration::from_secs(1);

struct Served {
    pipes: Pipes,
    address: SocketAddr,
    server: Arc<dyn ExchangeServer>,
    asked: Asked,
}

impl Served {
    async fn with(options: ServerOptions) -> Self {
        let pipes = Pipes::default();
        let (handler, asked) = Asking::new();
        let exchanger = HeaderExchanger::new(Arc::new(pipes.clone()));
        let server = exchanger.bind("127.0.0.1:0".parse().unwrap(), options, handler).await.unwrap();
        Self { pipes, address: server.local_addr(), server, asked }
    }

    async fn dial(&self) -> Far {
        dial(&self.pipes, self.address).await
    }
}

#[tokio::test]
async fn answers_carry_the_id_of_their_request_and_come_in_any_order() {
    let mut served = Served::with(ServerOptions::default()).await;
    let mut far = served.dial().await;
    far.send(Header::request(1, 2, true), b"one");
    far.send(Header::request(-2, 2, true), b"two");
    let (one, answer_one) = soon(served.asked.recv()).await.unwrap();
    let (two, answer_two) = soon(served.asked.recv()).await.unwrap();
    assert_eq!((&one.body[..], &two.body[..]), (&b"one"[..], &b"two"[..]));
    assert_eq!(one.peer, far.channel.local_addr());
    answer_two.send(reply(b"2")).unwrap();
    let (header, body) = far.frame().await.unwrap();
    assert_eq!(
        (header.request, header.two_way, header.id, header.status, &body[..]),
        (false, false, -2, 20, &b"2"[..])
    );
    answer_one.send(reply(b"1")).unwrap();
    assert_eq!(far.frame().await.unwrap().0.id, 1);
}

#[tokio::test]
async fn a_one_way_request_is_served_and_never_answered() {
    let mut served = Served::with(ServerOptions { threads: 1, ..ServerOptions::default() }).await;
    let mut far = served.dial().await;
    far.send(Header::request(1, 2, false), b"quiet");
    let (request, answer) = soon(served.asked.recv()).await.unwrap();
    assert!(!request.two_way);
    // Refused for want of a permit: not answered either.
    far.send(Header::request(2, 2, false), b"refused");
    answer.send(reply(b"nobody wants it")).unwrap();
    assert!(far.is_quiet().await);
    assert!(served.asked.is_empty());
}

#[tokio::test]
async fn a_full_server_refuses_at_once_and_still_answers_heartbeats() {
    let mut served = Served::with(ServerOptions { threads: 2, ..ServerOptions::default() }).await;
    let mut far = served.dial().await;
    for id in 1..=3 {
        far.send(Header::request(id, 2, true), b"slow");
    }
    let (header, text) = far.frame().await.unwrap();
    assert_eq!((header.id, header.status), (3, 100));
    let text = String::from_utf8(text.to_vec()).unwrap();
    let begin = format!(
        "Server side(127.0.0.1,{}) thread pool is exhausted, detail msg:Thread pool is EXHAUSTED! \
        Thread Name: DubboServerHandler-127.0.0.1:{0}, Pool Size: 2 (active: 2, core: 2, max: 2, largest: 2)",
        served.address.port()
    );
    assert!(text.starts_with(&begin), "{text}");
    far.send(Header::request(4, 2, true).of_event(), b"N");
    assert_eq!(far.frame().await.unwrap().0.id, 4);
    // A permit that comes back is used again.
    let (_, answer) = soon(served.asked.recv()).await.unwrap();
    answer.send(reply(b"done")).unwrap();
    assert_eq!(far.frame().await.unwrap().0.status, 20);
    far.send(Header::request(5, 2, true), b"next");
    soon(served.asked.recv()).await.unwrap();
    let (next, _) = soon(served.asked.recv()).await.unwrap();
    assert_eq!(&next.body[..], b"next");
}

#[tokio::test]
async fn a_panic_is_answered_and_gives_its_permit_back() {
    let mut served = Served::with(ServerOptions { threads: 1, ..ServerOptions::default() }).await;
    let mut far = served.dial().await;
    for id in 1..=2 {
        far.send(Header::request(id, 2, true), b"x");
        let (_, answer) = soon(served.asked.recv()).await.unwrap();
        drop(answer);
        let (header, _) = far.frame().await.unwrap();
        assert_eq!((header.id, header.status), (id, 70));
    }
}

// C77
#[tokio::test]
async fn a_request_over_the_limit_is_refused_and_the_next_one_served() {
    let mut served = Served::with(ServerOptions { payload: 8_192, ..ServerOptions::default() }).await;
    let mut far = served.dial().await;
    far.send(Header::request(1, 2, true), &[0xda; 20_000]);
    far.send(Header::request(2, 2, false), &[0xda; 20_000]);
    far.send(Header::request(3, 2, true), b"small");
    let (header, text) = far.frame().await.unwrap();
    assert_eq!((header.id, header.status), (1, 40));
    let text = String::from_utf8(text.to_vec()).unwrap();
    let begin = "Fail to decode request due to: java.io.IOException: Data length too large: 20000, max payload: 8192, ";
    assert!(text.starts_with(begin), "{text}");
    let (small, _answer) = soon(served.asked.recv()).await.unwrap();
    assert_eq!(&small.body[..], b"small");
    assert!(far.is_quiet().await);
}

// C77
#[tokio::test]
async fn a_response_over_the_limit_becomes_a_small_error() {
    let mut served = Served::with(ServerOptions { payload: 8_192, ..ServerOptions::default() }).await;
    let mut far = served.dial().await;
    far.send(Header::request(1, 2, true), b"x");
    let (_, answer) = soon(served.asked.recv()).await.unwrap();
    answer.send(reply(&[0; 20_030])).unwrap();
    let (header, text) = far.frame().await.unwrap();
    assert_eq!(header.status, 50);
    assert!(text.starts_with(b"Data length too large: 20030, max payload: 8192, channel: "));
    assert!(text.len() < 200);
}

#[tokio::test]
async fn garbage_and_negative_lengths_close_the_connection_and_no_other() {
    let served = Served::with(ServerOptions::default()).await;
    let mut good = served.dial().await;
    let mut bytes = super::end::frame(Header::request(1, 2, true), b"").to_vec();
    bytes[12..16].copy_from_slice(&[0xff; 4]);
    for garbage in [b"status -l\r\n".to_vec(), bytes] {
        let bad = served.dial().await;
        bad.channel.try_send(garbage.into()).unwrap();
        bad.channel.close(true);
    }
    good.send(Header::request(1, 2, true).of_event(), b"N");
    assert!(good.frame().await.is_some());
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_without_a_message() {
    let served = Served::with(ServerOptions { accepts: 1, ..ServerOptions::default() }).await;
    let mut first = served.dial().await;
    let mut second = served.dial().await;
    assert!(second.frame().await.is_none());
    first.send(Header::request(1, 2, true).of_event(), b"N");
    assert!(first.frame().await.is_some());
    // A place that becomes free is given again.
    first.channel.close(true);
    assert!(first.frame().await.is_none());
    let mut third = served.dial().await;
    third.send(Header::request(1, 2, true).of_event(), b"N");
    assert!(third.frame().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_uses_is_closed_and_a_used_one_is_not() {
    let served = Served::with(ServerOptions { idle_timeout: 180 * SECOND, ..ServerOptions::default() }).await;
    let (mut idle, mut used) = (served.dial().await, served.dial().await);
    for id in 0..5 {
        tokio::time::sleep(60 * SECOND).await;
        used.send(Header::request(id, 2, true).of_event(), b"N");
        used.frame().await.unwrap();
    }
    assert!(idle.frame().await.is_none());
    assert!(used.channel.is_open());
}

// C93
#[tokio::test(start_paused = true)]
async fn a_drain_tells_all_peers_and_waits_for_what_is_being_served() {
    let mut served = Served::with(ServerOptions::default()).await;
    let (mut busy, mut calm) = (served.dial().await, served.dial().await);
    busy.send(Header::request(1, 2, true), b"slow");
    let (_, answer) = soon(served.asked.recv()).await.unwrap();
    let draining = tokio::spawn({
        let server = Arc::clone(&served.server);
        async move { server.drain(60 * SECOND).await }
    });
    for far in [&mut busy, &mut calm] {
        let (header, body) = far.request().await;
        assert_eq!((header.event, header.two_way, &body[..]), (true, false, &b"\x01R"[..]));
    }
    // A request that was on its way is served too.
    calm.send(Header::request(2, 2, true), b"late");
    let (_, late) = soon(served.asked.recv()).await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    assert!(!draining.is_finished());
    answer.send(reply(b"done")).unwrap();
    late.send(reply(b"done")).unwrap();
    assert_eq!(busy.frame().await.unwrap().0.status, 20);
    assert_eq!(calm.frame().await.unwrap().0.status, 20);
    let began = tokio::time::Instant::now();
    draining.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    served.server.close().await;
    assert!(busy.frame().await.is_none());
    assert!(calm.frame().await.is_none());
    served.server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_its_grace_period() {
    let mut served = Served::with(ServerOptions::default()).await;
    let far = served.dial().await;
    far.send(Header::request(1, 2, true), b"endless");
    let _never_answered = soon(served.asked.recv()).await.unwrap();
    let began = tokio::time::Instant::now();
    served.server.drain(10 * SECOND).await;
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn dropping_a_server_closes_its_connections() {
    let served = Served::with(ServerOptions::default()).await;
    let mut far = served.dial().await;
    drop(served);
    assert!(far.frame().await.is_none());
}
