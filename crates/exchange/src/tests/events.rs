//! Heartbeats, read-only, writeable.

use std::time::Duration;

use super::end::{Asking, Provider, body, dial, soon};
use super::pipe::Pipes;
use crate::frame::Header;
use crate::{ClientOptions, ConnectionState, ExchangeClient, Exchanger, HeaderExchanger, ServerOptions};

const SECOND: Duration = Duration::from_secs(1);

async fn reaches(client: &dyn ExchangeClient, wanted: ConnectionState) {
    soon(client.states().wait_for(|state| *state == wanted)).await.unwrap();
}

// C75
#[tokio::test]
async fn a_client_answers_a_two_way_heartbeat_with_its_id_its_serialization_and_null() {
    let mut provider = Provider::start().await;
    let (_client, mut far) = provider.connected(ClientOptions::default()).await;
    far.channel.try_send(hex::decode("dabbe2001b6455420cda45fd000000014e").unwrap().into()).unwrap();
    let (header, body) = far.frame().await.unwrap();
    assert_eq!(header, Header { length: 1, ..Header::response(0x1b64_5542_0cda_45fd, 2, 20).of_event() });
    assert_eq!(&body[..], b"N");
    // Another serialization's null.
    far.send(Header::request(3, 6, true).of_event(), b"null");
    let (header, body) = far.frame().await.unwrap();
    assert_eq!((header.serialization, header.id, &body[..]), (6, 3, &b"null"[..]));
    // An empty body.
    far.send(Header::request(4, 2, true).of_event(), b"");
    assert_eq!(far.frame().await.unwrap().0.id, 4);
}

// C75
#[tokio::test]
async fn a_server_answers_two_way_heartbeats_only_and_keeps_in_step() {
    let pipes = Pipes::default();
    let (handler, mut asked) = Asking::new();
    let address = "127.0.0.1:20880".parse().unwrap();
    let exchanger = HeaderExchanger::new(std::sync::Arc::new(pipes.clone()));
    let _server = exchanger.bind(address, ServerOptions::default(), handler).await.unwrap();
    let mut far = dial(&pipes, address).await;
    far.send(Header::request(1, 2, false).of_event(), b"N");
    // Two-way, but no heartbeats.
    far.send(Header::request(5, 2, true).of_event(), b"\x01R");
    far.send(Header::request(6, 2, true).of_event(), b"\x03abc");
    far.send(Header::request(2, 2, true).of_event(), b"N");
    far.send(Header::request(3, 2, false), b"after");
    let (header, _) = far.frame().await.unwrap();
    assert_eq!((header.id, header.event, header.status), (2, true, 20));
    assert_eq!(&soon(asked.recv()).await.unwrap().0.body[..], b"after");
    assert!(far.is_quiet().await);
}

// C75
#[tokio::test]
async fn a_heartbeat_answer_never_ends_a_call() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let call = client.request(2, body(b"call"), 60 * SECOND);
    let other_end = async {
        let (request, _) = far.request().await;
        far.send(Header::response(request.id, 2, 20).of_event(), b"N");
        far.answer(&request, b"value");
    };
    let (response, ()) = tokio::join!(call, other_end);
    assert_eq!(&response.unwrap().body[..], b"value");
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_gets_heartbeats_and_is_made_anew_when_they_are_not_answered() {
    let mut provider = Provider::start().await;
    let options =
        ClientOptions { heartbeat: 60 * SECOND, heartbeat_timeout: 180 * SECOND, ..ClientOptions::default() };
    let (client, mut far) = provider.connected(options).await;
    let began = tokio::time::Instant::now();
    // Answered: the connection stays.
    let (beat, null) = far.request().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert!(beat.event && beat.two_way);
    assert_eq!(&null[..], b"N");
    far.send(Header::response(beat.id, 2, 20).of_event(), b"N");
    // Not answered: two more, then a new connection.
    for after in [120, 180] {
        assert!(far.request().await.0.event);
        assert_eq!(began.elapsed().as_secs(), after);
    }
    assert!(far.frame().await.is_none());
    assert_eq!(began.elapsed().as_secs(), 240);
    provider.connection().await;
    reaches(&*client, ConnectionState::Connected).await;
}

#[tokio::test]
async fn a_read_only_event_ends_no_call_and_lasts_until_the_peer_is_writeable_again() {
    let mut provider = Provider::start().await;
    let (client, mut far) = provider.connected(ClientOptions::default()).await;
    let call = client.request(2, body(b"call"), 60 * SECOND);
    let other_end = async {
        let (request, _) = far.request().await;
        far.send(Header::request(1, 2, false).of_event(), b"\x01R");
        reaches(&*client, ConnectionState::ReadOnly).await;
        far.answer(&request, b"still");
    };
    let (response, ()) = tokio::join!(call, other_end);
    assert_eq!(&response.unwrap().body[..], b"still");
    far.send(Header::request(2, 2, false).of_event(), b"\x01W");
    reaches(&*client, ConnectionState::Connected).await;
    assert!(far.is_quiet().await, "events without the two-way bit get no answer");
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_is_not_read_only() {
    let mut provider = Provider::start().await;
    let (client, far) = provider.connected(ClientOptions::default()).await;
    far.send(Header::request(1, 2, false).of_event(), b"\x01R");
    reaches(&*client, ConnectionState::ReadOnly).await;
    far.channel.close(true);
    provider.connection().await;
    reaches(&*client, ConnectionState::Connected).await;
}
