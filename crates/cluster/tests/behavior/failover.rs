//! Failover: who is tried, how often, and what the error says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::doubles::{Fleet, Log, Pointer, Provider, call, called, join, shared};
use dubhe_cluster::Failover;
use dubhe_core::error::{Delivery, ErrorCode, Exception, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::value::Value;

fn error(code: ErrorCode) -> RpcError {
    RpcError::new(code, "no luck")
}

#[tokio::test]
async fn attempts_alternate_between_two_providers_whatever_the_balancer_says() {
    // C70
    for told in [vec![0, 0, 0, 0, 0, 0, 0], vec![0, 1, 0, 0, 0, 1, 0], vec![0, 1, 0, 1, 0, 0, 0]] {
        let log = Log::default();
        let both = ["a", "b"].map(|name| Provider::failing(name, ErrorCode::Network, &log));
        let fleet = Fleet::new("retries=3", shared(&both));
        let result = join(&Failover, &fleet, &Pointer::at(told)).invoke(call()).await;
        assert!(result.is_err());
        assert_eq!(called(&log), ["a", "b", "a", "b"]);
    }
}

#[tokio::test]
async fn retries_read_the_list_again_before_each_attempt() {
    // C70
    let log = Log::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| Provider::failing(name, ErrorCode::Network, &log));
    let fleet = Fleet::new("retries=2", vec![]);
    fleet.then(Ok(shared(&[a.clone(), b.clone()])));
    fleet.then(Ok(shared(std::slice::from_ref(&b))));
    fleet.then(Ok(shared(&[c, b])));
    let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["a", "b", "c"]);
    assert!(failed.message().contains("(3/2)"), "{failed}");
}

#[tokio::test]
async fn a_call_that_succeeds_at_another_provider_succeeds() {
    let log = Log::default();
    let a = Provider::failing("a", ErrorCode::Network, &log);
    let b = Provider::new("b", "", &log);
    let fleet = Fleet::new("", shared(&[a, b]));
    assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.is_ok());
    assert_eq!(called(&log), ["a", "b"]);
}

#[tokio::test]
async fn what_another_provider_cannot_help_is_never_tried_again() {
    // C73
    for code in [
        ErrorCode::Biz,
        ErrorCode::Forbidden,
        ErrorCode::Serialization,
        ErrorCode::NoInvokerAvailableAfterFilter,
        ErrorCode::TimeoutTerminate,
        ErrorCode::MethodNotFound,
        ErrorCode::Validation,
        ErrorCode::Authorization,
    ] {
        let log = Log::default();
        let both = ["a", "b"].map(|name| Provider::failing(name, code, &log));
        let fleet = Fleet::new("", shared(&both));
        let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
        assert_eq!((failed.code(), called(&log)), (code, vec!["a".to_owned()]));
    }
}

#[tokio::test]
async fn network_failures_timeouts_limits_and_unclassified_refusals_are_tried_again() {
    // C73
    for code in [ErrorCode::Network, ErrorCode::Timeout, ErrorCode::LimitExceeded, ErrorCode::Unknown] {
        let log = Log::default();
        let a = Provider::new("a", "", &log).fails_with(error(code));
        let b = Provider::new("b", "", &log);
        let fleet = Fleet::new("", shared(&[a, b]));
        assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.is_ok());
        assert_eq!(called(&log), ["a", "b"], "{code:?}");
    }
}

#[tokio::test]
async fn an_exception_of_the_service_ends_the_attempts_and_comes_back_as_it_is() {
    // C73
    let log = Log::default();
    let thrown = RpcError::business(Exception::new("com.example.Sold", "sold out"));
    let a = Provider::new("a", "", &log).fails_with(error(ErrorCode::Network));
    let b = Provider::new("b", "", &log).fails_with(thrown);
    let fleet = Fleet::new("", shared(&[a, b]));
    let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["a", "b"]);
    assert_eq!(failed.exception().map(|thrown| &*thrown.class), Some("com.example.Sold"));
    assert_eq!(failed.delivery(), Delivery::Executed);
}

#[tokio::test]
async fn the_error_lists_the_attempts_and_has_the_code_and_cause_of_the_last() {
    let log = Log::default();
    let a = Provider::new("a", "", &log)
        .fails_with(error(ErrorCode::Network))
        .fails_with(RpcError::new(ErrorCode::Timeout, "waited 1000 ms").with_delivery(Delivery::Sent));
    let b = Provider::new("b", "", &log).fails_with(error(ErrorCode::LimitExceeded));
    let fleet = Fleet::new("", shared(&[a, b]));
    let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    let attempts: Vec<_> = failed.attempts().iter().map(|one| (&*one.provider, one.code)).collect();
    assert_eq!(
        attempts,
        [
            ("a:20880", ErrorCode::Network),
            ("b:20880", ErrorCode::LimitExceeded),
            ("a:20880", ErrorCode::Timeout)
        ]
    );
    assert_eq!((failed.code(), failed.delivery()), (ErrorCode::Timeout, Delivery::Sent));
    for part in [
        "Failed to invoke the method hello in the service demo.Greeter",
        "Tried 3 times of the providers [a:20880, b:20880] (2/2) from the registry zk1.example:2181",
        "on the consumer 192.0.2.9",
        "Last error is: waited 1000 ms",
    ] {
        assert!(failed.message().contains(part), "{part}: {failed}");
    }
    assert_eq!(std::error::Error::source(&failed).unwrap().to_string(), "waited 1000 ms");
}

#[tokio::test]
async fn how_often_is_decided_by_the_consumer_and_per_method() {
    // C65: retries of a provider would run calls again that their caller holds to run once.
    let table = [
        ("", "", 3),
        ("retries=5", "", 3),
        ("retries=5&hello.retries=7", "retries=1", 2),
        ("", "retries=0", 1),
        ("", "retries=-3", 1),
        ("", "retries=many", 3),
        ("", "retries=0&hello.retries=1", 2),
        ("", "retries=4&other.retries=0", 5),
    ];
    for (provider, consumer, attempts) in table {
        let log = Log::default();
        let only = (0..9)
            .fold(Provider::new("a", provider, &log), |one, _| one.fails_with(error(ErrorCode::Network)));
        let fleet = Fleet::new(consumer, shared(&[only]));
        assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.is_err());
        assert_eq!(called(&log).len(), attempts, "provider {provider:?}, consumer {consumer:?}");
    }
}

#[tokio::test]
async fn a_generic_call_has_the_retries_of_the_method_inside_it() {
    // C65
    let log = Log::default();
    let fleet = Fleet::new("hello.retries=0", shared(&[Provider::failing("a", ErrorCode::Network, &log)]));
    let arguments = vec![Value::from("hello"), Value::Null, Value::Null];
    let generic = Invocation::dynamic("$invoke", dubhe_core::invocation::GENERIC_DESCRIPTOR, arguments);
    assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(generic).await.is_err());
    assert_eq!(called(&log), ["a"]);
}

#[tokio::test]
async fn a_number_in_the_attachment_retries_counts_for_that_call_and_is_not_sent() {
    let log = Log::default();
    let only = Provider::failing("a", ErrorCode::Network, &log);
    let fleet = Fleet::new("retries=0", shared(&[Arc::clone(&only)]));
    let cluster = join(&Failover, &fleet, &Pointer::at([]));
    assert!(cluster.invoke(call().with_attachment("retries", 1)).await.is_err());
    assert_eq!(called(&log).len(), 2);
    assert!(only.seen.lock().unwrap().iter().all(|seen| seen.attachments().is_empty()));

    assert!(cluster.invoke(call().with_attachment("retries", "5")).await.is_err());
    assert_eq!(called(&log).len(), 1, "a text is the user's own");
}

#[tokio::test]
async fn no_attempt_starts_after_the_deadline_and_a_timeout_stays_a_timeout() {
    let log = Log::default();
    let both = ["a", "b"].map(|name| Provider::failing(name, ErrorCode::Timeout, &log));
    let fleet = Fleet::new("retries=9", shared(&both));
    let past = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
    let failed =
        join(&Failover, &fleet, &Pointer::at([])).invoke(call().with_deadline(past)).await.unwrap_err();
    assert_eq!(called(&log), ["a"]);
    assert!(failed.is_timeout());
    assert!(failed.message().contains("No time left for another attempt"), "{failed}");
    assert_eq!(failed.attempts().len(), 1);
}

#[tokio::test]
async fn a_list_that_ran_empty_between_attempts_is_reported_with_the_failure_before() {
    let log = Log::default();
    let fleet = Fleet::new("", shared(&[Provider::failing("a", ErrorCode::Network, &log)]));
    fleet.then(Ok(fleet_list(&fleet)));
    fleet.then(Ok(vec![]));
    let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::NoInvokerAvailableAfterFilter);
    assert_eq!(failed.attempts().len(), 1);
    assert!(failed.message().contains("a says no"), "{failed}");
    assert_eq!(std::error::Error::source(&failed).unwrap().to_string(), "a says no");
}

#[tokio::test]
async fn each_attempt_gets_the_call_as_the_caller_made_it() {
    let log = Log::default();
    let a = Provider::failing("a", ErrorCode::Network, &log);
    let b = Provider::new("b", "", &log);
    let fleet = Fleet::new("", shared(&[Arc::clone(&a), Arc::clone(&b)]));
    let given = call().with_attachment("trace", "1");
    assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(given.clone()).await.is_ok());
    for provider in [a, b] {
        assert_eq!(provider.seen.lock().unwrap()[0].attachments(), given.attachments());
    }
}

fn fleet_list(fleet: &Fleet) -> Vec<dubhe_core::invoker::SharedInvoker> {
    use dubhe_core::directory::Directory;
    fleet.invokers().to_vec()
}
