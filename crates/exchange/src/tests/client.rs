//! Requests, and the connection they go over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::end::{Provider, body, soon};
use crate::frame::Header;
use crate::{ClientOptions, ConnectionState, ExchangeClient, ExchangeError};

const SECOND: Duration = Duration::from_secs(1);

fn call(
    client: &Arc<dyn ExchangeClient>,
    bytes: &[u8],
    timeout: Duration,
) -> tokio::task::JoinHandle<Result<Vec<u8>, ExchangeError>> {
    let (client, frame) = (Arc::clone(client), body(bytes));
    tokio::spawn(async move { client.request(2, frame, timeout).await.map(|frame| frame.body.to_vec()) })
}

async fn reaches(client: &dyn ExchangeClient, wanted: ConnectionState) {
    soon(client.states().wait_for(|state| *state == wanted)).await.unwrap();
}

#[tokio::test]
async fn answers_in_any_order_reach_their_own_requests() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let calls: Vec<_> = (0..50_u8).map(|n| call(&client, &[n], 60 * SECOND)).collect();
    let mut requests = Vec::new();
    for _ in 0..50 {
        requests.push(far.request().await);
    }
    for (header, body) in requests.iter().rev() {
        assert!(header.two_way);
        far.answer(header, &[body[0], body[0]]);
    }
    for (n, call) in (0..).zip(calls) {
        assert_eq!(soon(call).await.unwrap().unwrap(), [n, n]);
    }
}

#[tokio::test]
async fn unknown_and_repeated_answers_are_dropped() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let first = call(&client, b"1", 60 * SECOND);
    let (one, _) = far.request().await;
    for stranger in [one.id.wrapping_add(1), one.id ^ (1 << 40), 0, -1, i64::MIN] {
        far.send(Header::response(stranger, 2, 20), b"wrong");
    }
    far.answer(&one, b"right");
    far.answer(&one, b"again");
    assert_eq!(soon(first).await.unwrap().unwrap(), b"right");
    let second = call(&client, b"2", 60 * SECOND);
    let (two, _) = far.request().await;
    assert_ne!(one.id, two.id);
    far.answer(&one, b"late");
    far.answer(&two, b"second");
    assert_eq!(soon(second).await.unwrap().unwrap(), b"second");
}

#[tokio::test]
async fn a_lost_connection_fails_all_pending_requests_at_once() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let calls: Vec<_> = (0..3).map(|_| call(&client, b"x", 3_600 * SECOND)).collect();
    for _ in 0..3 {
        far.request().await;
    }
    far.channel.close(false);
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, ExchangeError::Lost { .. }), "{error:?}");
        assert!(error.to_string().contains("was lost: closed by the peer"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_ends_in_time_and_its_late_answer_is_dropped() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let began = Instant::now();
    let slow = call(&client, b"slow", 5 * SECOND);
    let (request, _) = far.request().await;
    // A later request with an earlier end is not kept waiting.
    let fast = call(&client, b"fast", SECOND);
    far.request().await;
    let error = fast.await.unwrap().unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 1);
    let ExchangeError::Timeout { text, sent: true } = error else { panic!("{error:?}") };
    assert!(text.starts_with("Waiting server-side response timeout by scan timer. start time: "), "{text}");
    assert!(text.contains(", timeout: 1000 ms, request: "), "{text}");
    assert!(matches!(slow.await.unwrap(), Err(ExchangeError::Timeout { .. })));
    assert_eq!(began.elapsed().as_secs(), 5);
    far.answer(&request, b"late");
    let next = call(&client, b"next", SECOND);
    let (request, _) = far.request().await;
    far.answer(&request, b"in time");
    assert_eq!(next.await.unwrap().unwrap(), b"in time");
}

#[tokio::test]
async fn a_dropped_request_is_forgotten() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let dropped = call(&client, b"x", 3_600 * SECOND);
    let (request, _) = far.request().await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    // Nothing is pending: a close with a long grace period ends at once.
    far.answer(&request, b"nobody");
    soon(client.close(3_600 * SECOND)).await;
}

#[tokio::test]
async fn requests_wait_for_the_first_connection() {
    let mut provider = Provider::start().await;
    let client = provider.client(ClientOptions::default());
    assert_eq!(client.state(), ConnectionState::Connecting);
    let early = call(&client, b"early", 60 * SECOND);
    let mut far = provider.connection().await;
    let (request, _) = far.request().await;
    far.answer(&request, b"ok");
    assert_eq!(early.await.unwrap().unwrap(), b"ok");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_first_connection_no_longer_than_its_timeout() {
    let provider = Provider::start().await;
    provider.pipes.swallow_attempts(true);
    let client = provider.client(ClientOptions { connect_timeout: 3 * SECOND, ..ClientOptions::default() });
    let began = Instant::now();
    let error = call(&client, b"x", SECOND).await.unwrap().unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 1);
    assert!(matches!(error, ExchangeError::NotConnected { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_fail_at_once_while_the_connection_is_down_and_say_why() {
    let provider = Provider::start().await;
    provider.listener.stop().await;
    let client = provider.client(ClientOptions::default());
    reaches(&*client, ConnectionState::Disconnected).await;
    let began = Instant::now();
    let error = call(&client, b"x", 60 * SECOND).await.unwrap().unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let text = error.to_string();
    assert!(text.contains("failed to connect to server 127.0.0.1:"), "{text}");
    assert!(text.contains("connection refused"), "{text}");
}

// C29
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_made_again_at_once() {
    let mut provider = Provider::start().await;
    let (client, far) = provider.connected(ClientOptions::default()).await;
    tokio::time::sleep(10 * SECOND).await;
    let began = Instant::now();
    far.channel.close(true);
    let mut far = provider.connection().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    reaches(&*client, ConnectionState::Connected).await;
    let again = call(&client, b"again", SECOND);
    let (request, _) = far.request().await;
    far.answer(&request, b"ok");
    assert_eq!(again.await.unwrap().unwrap(), b"ok");
}

// C29
#[tokio::test(start_paused = true)]
async fn a_provider_that_restarts_within_two_seconds_is_connected_within_a_second_of_listening() {
    let mut provider = Provider::start().await;
    let (client, far) = provider.connected(ClientOptions::default()).await;
    tokio::time::sleep(10 * SECOND).await;
    provider.listener.stop().await;
    far.channel.close(true);
    reaches(&*client, ConnectionState::Disconnected).await;
    tokio::time::sleep(2 * SECOND).await;
    provider.restart().await;
    let began = Instant::now();
    // What the registry's news of the restart does.
    client.retry_now();
    provider.connection().await;
    assert!(began.elapsed() <= SECOND / 2, "{:?}", began.elapsed());
    reaches(&*client, ConnectionState::Connected).await;
}

#[tokio::test(start_paused = true)]
async fn attempts_to_a_dead_provider_grow_rare_even_under_load() {
    let provider = Provider::start().await;
    provider.listener.stop().await;
    let client = provider.client(ClientOptions::default());
    tokio::time::sleep(600 * SECOND).await;
    let attempts = *provider.pipes.attempts().borrow();
    assert!((20..60).contains(&attempts), "{attempts} attempts in ten minutes");
    for _ in 0..1_000 {
        call(&client, b"x", SECOND).await.unwrap().unwrap_err();
    }
    tokio::time::sleep(SECOND / 4).await;
    assert!(*provider.pipes.attempts().borrow() <= attempts + 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_closes_is_not_dialled_in_a_spin() {
    let mut provider = Provider::start().await;
    let _client = provider.client(ClientOptions::default());
    let began = Instant::now();
    for _ in 0..6 {
        provider.connection().await.channel.close(true);
    }
    assert!(began.elapsed() > 5 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn without_reconnect_a_lost_connection_is_made_again_by_the_next_request_only() {
    let mut provider = Provider::start().await;
    let options = ClientOptions { reconnect: false, ..ClientOptions::default() };
    let (client, far) = provider.connected(options).await;
    tokio::time::sleep(10 * SECOND).await;
    far.channel.close(true);
    reaches(&*client, ConnectionState::Disconnected).await;
    tokio::time::sleep(3_600 * SECOND).await;
    assert_eq!(*provider.pipes.attempts().borrow(), 1);
    call(&client, b"x", SECOND).await.unwrap().unwrap_err();
    provider.connection().await;
}

#[tokio::test(start_paused = true)]
async fn a_lazy_client_connects_at_its_first_request() {
    let mut provider = Provider::start().await;
    let client = provider.client(ClientOptions { lazy: true, ..ClientOptions::default() });
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(*provider.pipes.attempts().borrow(), 0);
    assert_eq!(client.state(), ConnectionState::Connecting);
    let first = call(&client, b"first", SECOND);
    let mut far = provider.connection().await;
    let (request, _) = far.request().await;
    far.answer(&request, b"ok");
    assert_eq!(first.await.unwrap().unwrap(), b"ok");
}

// C77
#[tokio::test]
async fn a_response_over_the_limit_fails_its_own_request_only() {
    let mut provider = Provider::start().await;
    let (client, mut far) =
        provider.connected(ClientOptions { payload: 8_192, ..ClientOptions::default() }).await;
    let large = call(&client, b"large", 60 * SECOND);
    let (first, _) = far.request().await;
    let small = call(&client, b"small", 60 * SECOND);
    let (second, _) = far.request().await;
    far.answer(&first, &[0xda; 10_839]);
    far.answer(&second, b"fits");
    let error = large.await.unwrap().unwrap_err();
    assert!(matches!(error, ExchangeError::TooLarge { sent: true, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("Data length too large: 10839, max payload: 8192, channel: "), "{text}");
    assert_eq!(small.await.unwrap().unwrap(), b"fits");
}

// C77
#[tokio::test]
async fn a_request_over_the_limit_fails_here_and_nothing_is_written() {
    let mut provider = Provider::start().await;
    let (client, mut far) =
        provider.connected(ClientOptions { payload: 10, ..ClientOptions::default() }).await;
    let error = call(&client, &[1; 11], SECOND).await.unwrap().unwrap_err();
    assert!(
        error.to_string().starts_with("Data length too large: 11, max payload: 10, channel: "),
        "{error}"
    );
    let sent = client.send(2, body(&[1; 11]), SECOND).await;
    assert!(matches!(sent, Err(ExchangeError::TooLarge { sent: false, .. })), "{sent:?}");
    assert!(far.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn garbage_from_a_provider_ends_the_connection_and_a_new_one_is_made() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let pending = call(&client, b"x", 60 * SECOND);
    far.request().await;
    far.channel.try_send("HTTP/1.1 400 Bad Request\r\n\r\n".into()).unwrap();
    let error = pending.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no dubbo frame"), "{error}");
    far.channel.close(true);
    provider.connection().await;
}

#[tokio::test]
async fn a_one_way_request_has_no_two_way_bit_and_waits_for_nothing() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    client.send(2, body(b"go"), SECOND).await.unwrap();
    let (header, body) = far.request().await;
    assert_eq!((header.two_way, header.event, &body[..]), (false, false, &b"go"[..]));
}

// C91
#[tokio::test(start_paused = true)]
async fn a_close_waits_for_pending_calls_and_refuses_new_ones() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let long = call(&client, b"long", 60 * SECOND);
    let (request, _) = far.request().await;
    let closing = tokio::spawn({
        let client = Arc::clone(&client);
        async move { client.close(60 * SECOND).await }
    });
    reaches(&*client, ConnectionState::Closed).await;
    let refused = call(&client, b"new", SECOND).await.unwrap().unwrap_err();
    assert!(matches!(refused, ExchangeError::Closed(_)), "{refused:?}");
    tokio::time::sleep(30 * SECOND).await;
    assert!(far.channel.is_open());
    far.answer(&request, b"value");
    assert_eq!(long.await.unwrap().unwrap(), b"value");
    closing.await.unwrap();
    assert!(far.frame().await.is_none());
}

// C91
#[tokio::test(start_paused = true)]
async fn a_close_fails_what_is_pending_after_its_grace_period() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let long = call(&client, b"long", 3_600 * SECOND);
    far.request().await;
    let began = Instant::now();
    client.close(10 * SECOND).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(matches!(long.await.unwrap(), Err(ExchangeError::Lost { .. })));
    client.close(10 * SECOND).await;
    assert_eq!(began.elapsed().as_secs(), 10);
}

// C91
#[tokio::test(start_paused = true)]
async fn nobody_reconnects_for_nobody() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    drop(client);
    assert!(far.frame().await.is_none());
    let never_connected = provider.client(ClientOptions { lazy: true, ..ClientOptions::default() });
    drop(never_connected);
    tokio::time::sleep(3_600 * SECOND).await;
    assert_eq!(*provider.pipes.attempts().borrow(), 1);
}

#[tokio::test]
async fn a_request_of_the_provider_is_answered_and_the_connection_goes_on() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    far.send(Header::request(11, 2, true), b"callback");
    let (header, text) = far.frame().await.unwrap();
    assert_eq!((header.request, header.id, header.status), (false, 11, 70));
    assert_eq!(&text[..], b"no callbacks here");
    far.send(Header::request(12, 2, false), b"one-way callback");
    let after = call(&client, b"after", SECOND);
    let (request, _) = far.request().await;
    far.answer(&request, b"ok");
    assert_eq!(after.await.unwrap().unwrap(), b"ok");
}
