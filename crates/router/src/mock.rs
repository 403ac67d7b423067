use std::borrow::Cow;
use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{BoundRouter, RuleRouter};
use dubhe_core::value::Value;

/// Attachment by which the mock cluster asks for a made-up answer. It must not go to a provider.
pub const NEED_MOCK: &str = "invocation.need.mock";

/// Keeps providers of protocol `mock` apart from real ones (`MockInvokersSelector` of Dubbo).
///
/// A call without [`NEED_MOCK`] gets real providers, one with `true` the mock ones, any other value all.
#[derive(Clone, Copy, Debug, Default)]
pub struct MockSelector;

#[derive(Debug)]
struct BoundMock {
    /// Positions of the mock providers, ascending.
    mocks: Box<[usize]>,
}

const REAL: u64 = 0;
const MOCK: u64 = 1;
const ALL: u64 = 2;

impl RuleRouter for MockSelector {
    fn name(&self) -> &str {
        "mock"
    }

    fn priority(&self) -> i32 {
        -100
    }

    fn bind(&self, providers: &Arc<[SharedInvoker]>, _consumer: &Url) -> Box<dyn BoundRouter> {
        let is_mock = |provider: &SharedInvoker| provider.url().protocol() == keys::protocol::MOCK;
        let mocks =
            providers.iter().enumerate().filter(|(_, one)| is_mock(one)).map(|(position, _)| position);
        Box::new(BoundMock { mocks: mocks.collect() })
    }
}

impl BoundRouter for BoundMock {
    fn outcome(&self, call: &Invocation) -> u64 {
        match call.attachments().get(NEED_MOCK) {
            None => REAL,
            Some(Value::Bool(true)) => MOCK,
            Some(value) if value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")) => MOCK,
            Some(_) => ALL,
        }
    }

    fn keep(&self, outcome: u64, input: &[usize]) -> Vec<usize> {
        let is_mock = |position: &usize| self.mocks.binary_search(position).is_ok();
        match outcome {
            REAL if self.mocks.is_empty() => input.to_vec(),
            REAL => input.iter().copied().filter(|position| !is_mock(position)).collect(),
            MOCK => input.iter().copied().filter(is_mock).collect(),
            _ => input.to_vec(),
        }
    }

    fn reason(&self, outcome: u64, position: usize) -> Cow<'_, str> {
        match (outcome, self.mocks.binary_search(&position).is_ok()) {
            (REAL, false) => "a real provider".into(),
            (REAL, true) => "a mock provider, and the call does not ask for one".into(),
            (MOCK, false) => "a real provider, and the call asks for a mock one".into(),
            (MOCK, true) => "a mock provider".into(),
            _ => "the call takes real and mock providers".into(),
        }
    }
}
