use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::{Candidates, LoadBalance};
use dubhe_core::response::Response;

use crate::messages;
use crate::selection::Selection;

/// One of several registries for each call. What is joined here are not providers but whole clusters, one for each registry, whose
/// URLs have the registry's parameters: `preferred` (default false), `zone`, `weight` (default 100), `loadbalance` (`random`).
///
/// In this order, and only among registries that have somebody to call:
///
/// 1. the first one that is preferred;
/// 2. the first one in the zone that the call names (attachment `registry_zone`); with `registry_zone_force=true` no other one is
///    used then, and having none is an error;
/// 3. one by weight;
/// 4. the first.
///
/// When none has anybody, they are asked in their order: each says why. A call that failed in one registry after it was sent is not
/// made again in another.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZoneAware;

impl ZoneAware {
    /// The name in URLs.
    pub const NAME: &str = "zone-aware";
}

impl Cluster for ZoneAware {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn join(
        &self,
        directory: Arc<dyn Directory>,
        balancers: Arc<Extensions<dyn LoadBalance>>,
    ) -> SharedInvoker {
        Arc::new(ZoneAwareInvoker { selection: Selection::new(directory, balancers) })
    }
}

#[derive(Debug)]
struct ZoneAwareInvoker {
    selection: Selection,
}

impl ZoneAwareInvoker {
    async fn run(&self, call: Invocation) -> Result<Response, RpcError> {
        let candidates = self.selection.candidates(&call)?;
        match self.choose(&candidates, &call)? {
            Some(registry) => registry.invoke(call).await,
            None => self.ask_all(&candidates, call).await,
        }
    }

    /// The registry for a call; `None` when none is known to have anybody.
    fn choose(&self, candidates: &Candidates, call: &Invocation) -> Result<Option<SharedInvoker>, RpcError> {
        let available = || candidates.invokers().iter().filter(|one| one.is_available());
        if let Some(preferred) = available().find(|one| one.url().bool_param(keys::PREFERRED, false)) {
            return Ok(Some(Arc::clone(preferred)));
        }
        if let Some(zone) = call.attachments().get_str(keys::REGISTRY_ZONE).filter(|zone| !zone.is_empty()) {
            if let Some(near) = available().find(|one| one.url().param(keys::ZONE) == Some(zone)) {
                return Ok(Some(Arc::clone(near)));
            }
            let forced = call.attachments().get_str(keys::REGISTRY_ZONE_FORCE);
            if forced.is_some_and(|forced| forced.eq_ignore_ascii_case("true")) {
                return Err(messages::no_registry_in_zone(
                    &**self.selection.directory(),
                    call,
                    zone,
                    candidates,
                ));
            }
        }
        let mut some = available();
        match (some.next(), some.next()) {
            (None, _) => Ok(None),
            (Some(only), None) => Ok(Some(Arc::clone(only))),
            (Some(first), Some(_)) => {
                let picked = self.selection.select(candidates, call, &[])?;
                Ok(Some(if picked.is_available() { picked } else { Arc::clone(first) }))
            }
        }
    }

    async fn ask_all(&self, candidates: &Candidates, call: Invocation) -> Result<Response, RpcError> {
        let mut said = Vec::new();
        for registry in candidates.invokers() {
            match registry.invoke(call.clone()).await {
                Err(error) if has_nobody(&error) => {
                    said.push(format!("{}: {}", registry.url().address(), error.message()));
                }
                other => return other,
            }
        }
        Err(messages::no_registry(&**self.selection.directory(), &call, &said))
    }
}

/// Whether nothing was sent, for want of somebody to send it to.
fn has_nobody(error: &RpcError) -> bool {
    error.delivery() == Delivery::NotSent
        && matches!(error.code(), ErrorCode::Forbidden | ErrorCode::NoInvokerAvailableAfterFilter)
}

impl Invoker for ZoneAwareInvoker {
    fn url(&self) -> &Url {
        self.selection.directory().consumer_url()
    }

    fn is_available(&self) -> bool {
        self.selection.directory().is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.run(call))
    }
}
