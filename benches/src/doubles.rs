//! Stand-ins for what a question does not ask about: invokers that do nothing, and the protocol that makes them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::response::{Payload, Response};

/// An invoker that answers null at once.
#[derive(Debug)]
pub struct Idle(Url);

impl Invoker for Idle {
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

/// A protocol whose invokers do nothing.
#[derive(Debug)]
pub struct IdleProtocol;

#[async_trait]
impl Protocol for IdleProtocol {
    fn name(&self) -> &str {
        "dubbo"
    }

    fn default_port(&self) -> u16 {
        20_880
    }

    fn refer(&self, url: &Url) -> Result<SharedInvoker, RpcError> {
        Ok(Arc::new(Idle(url.clone())))
    }

    async fn export(&self, _: Exported) -> Result<Box<dyn Exporter>, RpcError> {
        Err(RpcError::new(ErrorCode::Unknown, "this protocol serves nothing"))
    }

    async fn drain(&self, _: Duration) {}

    async fn close(&self) {}
}

/// Protocols with [`IdleProtocol`] as `dubbo`.
pub fn protocols() -> Arc<Extensions<dyn Protocol>> {
    let mut protocols: Extensions<dyn Protocol> = Extensions::new("protocol");
    protocols.replace("dubbo", 0, || Arc::new(IdleProtocol));
    Arc::new(protocols)
}

/// A provider URL of about 550 characters, as Dubbo 3.1 registers it; `index` makes address and region.
pub fn provider_text(index: usize) -> String {
    let (a, b) = (index / 250, index % 250 + 1);
    let region = if index.is_multiple_of(2) { "east" } else { "west" };
    format!(
        "dubbo://10.{}.{}.{b}:20880/dev.dubhe.bench.OrderService?anyhost=true&application=order-provider&background=false&deprecated=false\
         &dubbo=2.0.2&dynamic=true&generic=false&interface=dev.dubhe.bench.OrderService&methods=cancel,create,echo,find,findAll,list,\
         pay,refund,ship,track&organization=dubhe&owner=platform&pid={}&region={region}&register-mode=all&release=3.1.11&revision=1.0.0\
         &service-name-mapping=true&side=provider&timeout=3000&timestamp={}&version=1.0.0&weight=100&warmup=600000&environment=product\
         &threads=200&accepts=1000&loadbalance=random",
        a / 250,
        a % 250,
        1_000 + index % 30_000,
        1_700_000_000_000_u64 + index as u64,
    )
}

/// The consumer of the benches.
pub fn consumer() -> Url {
    Url::builder("consumer", "192.0.2.9", 0)
        .path("dev.dubhe.bench.OrderService")
        .param("interface", "dev.dubhe.bench.OrderService")
        .param("application", "order-consumer")
        .param("side", "consumer")
        .param("version", "1.0.0")
        .param("retries", 0)
        .build()
}
