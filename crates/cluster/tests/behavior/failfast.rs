//! Failfast: one attempt, and what the error says.

use crate::doubles::{Fleet, Log, Pointer, Provider, call, called, join, shared};
use dubhe_cluster::Failfast;
use dubhe_core::error::{Delivery, ErrorCode, Exception, RpcError};

#[tokio::test]
async fn one_attempt_is_made_whatever_retries_say() {
    let log = Log::default();
    let lost = RpcError::new(ErrorCode::Network, "connection lost").with_delivery(Delivery::Sent);
    let a = Provider::new("a", "", &log).fails_with(lost);
    let b = Provider::new("b", "", &log);
    let fleet = Fleet::new("retries=5", shared(&[a, b]));
    let failed = join(&Failfast, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["a"]);
    assert_eq!((failed.code(), failed.delivery()), (ErrorCode::Network, Delivery::Sent));
    assert_eq!(failed.attempts().len(), 1);
    for part in [
        "Failfast invoke providers a:20880 random for service demo.Greeter method hello on consumer 192.0.2.9",
        "but no luck to perform the invocation. Last error is: connection lost",
    ] {
        assert!(failed.message().contains(part), "{part}: {failed}");
    }
}

#[tokio::test]
async fn an_exception_of_the_service_comes_back_as_it_is() {
    // C73
    let log = Log::default();
    let thrown = RpcError::business(Exception::new("com.example.Sold", "sold out"));
    let fleet = Fleet::new("", shared(&[Provider::new("a", "", &log).fails_with(thrown)]));
    let failed = join(&Failfast, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(failed.message(), "com.example.Sold: sold out");
}
