//! The texts that users of Dubbo search for, and the errors that carry them.

use dubhe_common::{defaults, keys};
use dubhe_core::directory::Directory;
use dubhe_core::error::{Attempt, ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;

/// Why no further attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All that are allowed were made.
    Exhausted,
    /// The call's deadline has come.
    OutOfTime,
}

/// Routing left no provider: what was asked for, where, what the directory holds, and what to do.
pub(crate) fn no_provider(directory: &dyn Directory, call: &Invocation) -> RpcError {
    let consumer = directory.consumer_url();
    let status = directory.status().borrow().clone();
    RpcError::new(
        ErrorCode::NoInvokerAvailableAfterFilter,
        format!(
            "Failed to invoke the method {} in the service {}. No provider available for the service {} from registry {} on the \
             consumer {} using the dubbo version {}. Please check if the providers have been started and registered. \
             (The directory has {status}; if it is not empty, a routing rule keeps this call from all of them: see `explain`.)",
            call.method_name(),
            consumer.service_interface(),
            consumer.service_key(),
            directory.origin(),
            consumer.host(),
            defaults::DUBBO_VERSION,
        ),
    )
}

/// None of the registries has a provider: what each says.
pub(crate) fn no_registry(directory: &dyn Directory, call: &Invocation, said: &[String]) -> RpcError {
    let consumer = directory.consumer_url();
    RpcError::new(
        ErrorCode::NoInvokerAvailableAfterFilter,
        format!(
            "No provider available for the method {} in the service {} from any of {} registries on the consumer {} using the dubbo \
             version {}: {}",
            call.method_name(),
            consumer.service_key(),
            said.len(),
            consumer.host(),
            defaults::DUBBO_VERSION,
            said.join("; "),
        ),
    )
}

/// A call that must stay in its zone found no registry there.
pub(crate) fn no_registry_in_zone(
    directory: &dyn Directory,
    call: &Invocation,
    zone: &str,
    registries: &[SharedInvoker],
) -> RpcError {
    let known: Vec<String> = registries
        .iter()
        .map(|one| format!("{} (zone {})", one.url().address(), one.url().param_or(keys::ZONE, "not set")))
        .collect();
    RpcError::new(
        ErrorCode::NoInvokerAvailableAfterFilter,
        format!(
            "No registry with a provider of the service {} in the zone {zone}, which the call of {} must not leave ({}=true). \
             Registries: {}",
            directory.consumer_url().service_key(),
            call.method_name(),
            keys::REGISTRY_ZONE_FORCE,
            known.join(", "),
        ),
    )
}

/// All attempts failed, or there is no time for more: what was tried where, and the last error with its code.
pub(crate) fn tried(
    directory: &dyn Directory,
    call: &Invocation,
    attempts: Vec<Attempt>,
    listed: usize,
    ended: Ended,
    last: RpcError,
) -> RpcError {
    let consumer = directory.consumer_url();
    let mut addresses: Vec<&str> = Vec::new();
    for attempt in &attempts {
        if !addresses.contains(&&*attempt.provider) {
            addresses.push(&attempt.provider);
        }
    }
    let mut text = format!(
        "Failed to invoke the method {} in the service {}. Tried {} times of the providers [{}] ({}/{listed}) from the registry {} on \
         the consumer {} using the dubbo version {}. Last error is: {}",
        call.method_name(),
        consumer.service_interface(),
        attempts.len(),
        addresses.join(", "),
        addresses.len(),
        directory.origin(),
        consumer.host(),
        defaults::DUBBO_VERSION,
        last.message(),
    );
    if ended == Ended::OutOfTime {
        text.push_str(" (No time left for another attempt.)");
    }
    wrap(text, attempts, last)
}

/// No provider is left for a further attempt: says so, and how the attempts before it failed.
pub(crate) fn none_left(error: RpcError, attempts: Vec<Attempt>, last: RpcError) -> RpcError {
    let text = format!(
        "{} (This was before another attempt, after {} failed. Last error is: {})",
        error.message(),
        attempts.len(),
        last.message()
    );
    error.with_message(text).with_delivery(last.delivery()).with_attempts(attempts).with_source(last)
}

/// The only attempt failed.
pub(crate) fn failfast(
    directory: &dyn Directory,
    call: &Invocation,
    balancer: &str,
    attempts: Vec<Attempt>,
    last: RpcError,
) -> RpcError {
    let consumer = directory.consumer_url();
    let provider = attempts.first().map_or("?", |attempt| &attempt.provider).to_owned();
    let text = format!(
        "Failfast invoke providers {provider} {balancer} for service {} method {} on consumer {} use dubbo version {}, but no luck to perform \
         the invocation. Last error is: {}",
        consumer.service_key(),
        call.method_name(),
        consumer.host(),
        defaults::DUBBO_VERSION,
        last.message(),
    );
    wrap(text, attempts, last)
}

/// `last`'s code, delivery and status under another text, with `last` as the source.
fn wrap(text: String, attempts: Vec<Attempt>, last: RpcError) -> RpcError {
    let mut error = RpcError::new(last.code(), text).with_delivery(last.delivery()).with_attempts(attempts);
    if let Some(status) = last.status() {
        error = error.with_status(status);
    }
    if let Some(provider) = last.provider() {
        error = error.with_provider(provider);
    }
    error.with_source(last)
}

/// How one attempt failed.
pub(crate) fn attempt(address: &str, error: &RpcError) -> Attempt {
    Attempt { provider: address.into(), code: error.code(), message: error.message().into() }
}
