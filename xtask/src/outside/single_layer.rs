//! The router layer alone: a rule, a few providers, and why a call goes where it goes.

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::response::{Payload, Response};
use dubhe_core::router::RouterChain;
use dubhe_router::{Chain, ConditionRouter};

#[derive(Debug)]
struct Provider(Url);

impl Invoker for Provider {
    fn url(&self) -> &Url {
        &self.0
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, _: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(std::future::ready(Ok(Response::of(Payload::null()))))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let consumer = Url::parse("consumer://192.0.2.9/demo.Shop")?;
    let mut providers: Vec<SharedInvoker> = Vec::new();
    for address in ["192.0.2.1:20880/demo.Shop?region=east", "192.0.2.2:20880/demo.Shop?region=west"] {
        providers.push(Arc::new(Provider(Url::parse(&format!("dubbo://{address}"))?)));
    }
    let chain = Chain::builder(consumer).rule(ConditionRouter::parse("method = buy => region = west")?).build();
    let routes = chain.bind(&providers.into());
    let buy = Invocation::dynamic("buy", "", Vec::new());
    println!("{}", routes.explain(&buy));
    let candidates = routes.candidates(&buy)?;
    assert_eq!(candidates.len(), 1);
    assert_eq!(candidates.invokers()[0].url().host(), "192.0.2.2");
    Ok(())
}
