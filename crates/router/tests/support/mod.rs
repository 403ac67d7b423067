//! Doubles for the chain: providers that are only an address, and short ways to calls and lists.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{Invocation, Method};
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::Candidates;
use dubhe_core::response::Response;
use dubhe_core::value::Value;

#[derive(Debug)]
pub(crate) struct Provider {
    effective: Url,
    registered: Url,
}

impl Invoker for Provider {
    fn url(&self) -> &Url {
        &self.effective
    }

    fn registered_url(&self) -> &Url {
        &self.registered
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, _call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async {
            Err(RpcError::new(ErrorCode::Network, "a provider of a routing test is not called"))
        })
    }
}

/// A provider with the same URL as registered and in effect.
pub(crate) fn provider(url: &str) -> SharedInvoker {
    let url = Url::parse(url).unwrap();
    Arc::new(Provider { effective: url.clone(), registered: url })
}

/// A provider as a directory makes it: what it registered, and that with the consumer's parameters over it.
pub(crate) fn merged_provider(registered: &str, effective: &str) -> SharedInvoker {
    Arc::new(Provider {
        effective: Url::parse(effective).unwrap(),
        registered: Url::parse(registered).unwrap(),
    })
}

pub(crate) fn providers<T: AsRef<str>>(urls: &[T]) -> Arc<[SharedInvoker]> {
    urls.iter().map(|url| provider(url.as_ref())).collect()
}

/// `count` providers, every second one in region `hz`, the others in `sh`.
pub(crate) fn many(count: usize) -> Arc<[SharedInvoker]> {
    (0..count)
        .map(|at| {
            let region = if at % 2 == 0 { "hz" } else { "sh" };
            provider(&format!("dubbo://10.0.{}.{}:20880/com.foo.Bar?region={region}", at / 250, at % 250))
        })
        .collect()
}

pub(crate) fn call(method: &str) -> Invocation {
    call_with(method, Vec::new())
}

pub(crate) fn call_with(method: &str, arguments: Vec<Value>) -> Invocation {
    Invocation::new(Arc::new(Method::new(method, "")), Arc::new(arguments))
}

pub(crate) fn consumer() -> Url {
    Url::parse("consumer://10.0.0.9/com.foo.Bar?application=shop&region=hz").unwrap()
}

pub(crate) fn addresses(candidates: &Candidates) -> Vec<String> {
    candidates.invokers().iter().map(|one| one.url().address()).collect()
}
