use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker, same_invoker};
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
/// 3. one by weight, of those that the directory has not set aside;
/// 4. the first of those.
///
/// When the chosen one has nobody after all, or none seems to have anybody, the others are asked, those that seem to have somebody
/// first: when all say no, the error tells why. A call that is forced into a zone is asked of no registry outside. A call that was
/// tried on a provider of one registry is not made again in another.
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
        // What is set aside may be back: that costs a look, where leaving it out may cost the call.
        let registries = self.selection.directory().invokers();
        let zone = Zone::of(&call);
        let chosen = self.choose(&registries, &candidates, &call, zone)?;
        let mut said = Vec::new();
        if let Some(chosen) = &chosen {
            match chosen.invoke(call.clone()).await {
                Err(error) if has_nobody(&error) => said.push(answer(chosen, &error)),
                other => return other,
            }
        }
        let is_left = |one: &&SharedInvoker| {
            !chosen.as_ref().is_some_and(|chosen| same_invoker(chosen, one))
                && zone.is_none_or(|zone| zone.admits(one))
        };
        let (likely, rest): (Vec<_>, Vec<_>) =
            registries.iter().filter(is_left).partition(|one| one.is_available());
        for registry in likely.into_iter().chain(rest) {
            match registry.invoke(call.clone()).await {
                Err(error) if has_nobody(&error) => said.push(answer(registry, &error)),
                other => return other,
            }
        }
        Err(messages::no_registry(&**self.selection.directory(), &call, &said))
    }

    /// The registry for a call; `None` when none is known to have anybody.
    fn choose(
        &self,
        registries: &[SharedInvoker],
        candidates: &Candidates,
        call: &Invocation,
        zone: Option<Zone<'_>>,
    ) -> Result<Option<SharedInvoker>, RpcError> {
        let first = |wanted: &dyn Fn(&SharedInvoker) -> bool| {
            registries.iter().find(|one| wanted(one) && one.is_available()).cloned()
        };
        if let Some(preferred) = first(&|one| one.url().bool_param(keys::PREFERRED, false)) {
            return Ok(Some(preferred));
        }
        if let Some(zone) = zone {
            if let Some(near) = first(&|one| zone.has(one)) {
                return Ok(Some(near));
            }
            if zone.forced {
                let directory = &**self.selection.directory();
                return Err(messages::no_registry_in_zone(directory, call, zone.name, registries));
            }
        }
        let mut available = candidates.invokers().iter().filter(|one| one.is_available());
        match (available.next(), available.next()) {
            (None, _) => Ok(None),
            (Some(only), None) => Ok(Some(Arc::clone(only))),
            (Some(first), Some(_)) => {
                let picked = self.selection.select(candidates, call, &[])?;
                Ok(Some(if picked.is_available() { picked } else { Arc::clone(first) }))
            }
        }
    }
}

/// Where a call is to go.
#[derive(Clone, Copy)]
struct Zone<'a> {
    name: &'a str,
    /// Nowhere else, then.
    forced: bool,
}

impl<'a> Zone<'a> {
    fn of(call: &'a Invocation) -> Option<Self> {
        let attachments = call.attachments();
        let name = attachments.get_str(keys::REGISTRY_ZONE).filter(|name| !name.is_empty())?;
        let forced = attachments.get_str(keys::REGISTRY_ZONE_FORCE);
        Some(Self { name, forced: forced.is_some_and(|forced| forced.eq_ignore_ascii_case("true")) })
    }

    fn has(self, registry: &SharedInvoker) -> bool {
        registry.url().param(keys::ZONE) == Some(self.name)
    }

    /// Whether a registry may be asked when the chosen one has nobody.
    fn admits(self, registry: &SharedInvoker) -> bool {
        !self.forced || self.has(registry)
    }
}

/// Whether nothing was sent, for want of somebody to send it to.
fn has_nobody(error: &RpcError) -> bool {
    error.delivery() == Delivery::NotSent
        && error.attempts().is_empty()
        && matches!(error.code(), ErrorCode::Forbidden | ErrorCode::NoInvokerAvailableAfterFilter)
}

/// What a registry that has nobody said.
fn answer(registry: &SharedInvoker, error: &RpcError) -> String {
    format!("{}: {}", registry.url().address(), error.message())
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
