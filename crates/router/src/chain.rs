use std::collections::BTreeMap;
use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{ChangeCount, Changes, Router, RouterChain, Routes, RuleRouter};
use parking_lot::Mutex;

use crate::condition::Dialect;
use crate::mock::MockSelector;
use crate::registry_rules::RegistryRules;
use crate::routes::CompiledRoutes;
use crate::step::Step;
use crate::user::UserStep;

/// The routers of one service of one consumer.
///
/// Routers and rules run by ascending priority, ties by name; the rules of the registry's `routers` category run after them, by their
/// own priority. A rule put or removed with [`Chain::set_rule`] counts from the next [`RouterChain::bind`] on;
/// [`RouterChain::changes`] tells that it is time for one.
#[derive(Debug)]
pub struct Chain {
    consumer: Url,
    routers: Vec<Member>,
    fail_fast: bool,
    dialect: Dialect,
    rules: Mutex<Rules>,
    changes: Changes,
}

#[derive(Clone, Debug)]
enum Member {
    Rule(Arc<dyn RuleRouter>),
    User(Arc<dyn Router>),
}

#[derive(Debug, Default)]
struct Rules {
    named: BTreeMap<String, Arc<dyn RuleRouter>>,
    registry: RegistryRules,
}

impl Chain {
    /// A chain for a consumer, with the built-in routers.
    pub fn builder(consumer: Url) -> ChainBuilder {
        ChainBuilder {
            consumer,
            routers: vec![Member::Rule(Arc::new(MockSelector))],
            fail_fast: true,
            dialect: Dialect::default(),
        }
    }

    /// Puts a rule under a name, in place of an earlier one of that name.
    pub fn set_rule(&self, name: &str, rule: impl RuleRouter + 'static) {
        self.rules.lock().named.insert(name.to_owned(), Arc::new(rule));
        self.changed();
    }

    /// Removes the rule of that name. Returns whether there was one.
    pub fn remove_rule(&self, name: &str) -> bool {
        let removed = self.rules.lock().named.remove(name).is_some();
        if removed {
            self.changed();
        }
        removed
    }

    /// The names of the rules put with [`Chain::set_rule`].
    pub fn rule_names(&self) -> Vec<String> {
        self.rules.lock().named.keys().cloned().collect()
    }

    fn changed(&self) {
        self.changes.record();
    }
}

impl RouterChain for Chain {
    fn bind(&self, providers: &Arc<[SharedInvoker]>) -> Arc<dyn Routes> {
        let (named, registry) = {
            let rules = self.rules.lock();
            (rules.named.values().cloned().map(Member::Rule).collect::<Vec<_>>(), rules.registry.rules())
        };
        let mut members: Vec<&Member> = self.routers.iter().chain(&named).collect();
        members.sort_by_key(|member| (member.priority(), member.name().to_owned()));
        let own = members.into_iter().map(|member| member.bind(providers, &self.consumer));
        let from_registry = registry.iter().map(|rule| Step::of_rule(rule, providers, &self.consumer));
        let steps = own.chain(from_registry).collect();
        Arc::new(CompiledRoutes::new(Arc::clone(providers), self.consumer.clone(), steps, self.fail_fast))
    }

    fn set_registry_rules(&self, rules: &[Url]) -> bool {
        self.rules.lock().registry.replace(rules, self.dialect)
    }

    fn changes(&self) -> ChangeCount {
        self.changes.subscribe()
    }
}

impl Member {
    fn name(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.name(),
            Self::User(router) => router.name(),
        }
    }

    fn priority(&self) -> i32 {
        match self {
            Self::Rule(rule) => rule.priority(),
            Self::User(router) => router.priority(),
        }
    }

    fn bind(&self, providers: &Arc<[SharedInvoker]>, consumer: &Url) -> Step {
        match self {
            Self::Rule(rule) => Step::of_rule(&**rule, providers, consumer),
            Self::User(router) => Step::User(UserStep::new(Arc::clone(router))),
        }
    }
}

/// Makes a [`Chain`].
#[derive(Debug)]
pub struct ChainBuilder {
    consumer: Url,
    routers: Vec<Member>,
    fail_fast: bool,
    dialect: Dialect,
}

impl ChainBuilder {
    /// Adds a user's router.
    pub fn router(mut self, router: impl Router + 'static) -> Self {
        self.routers.push(Member::User(Arc::new(router)));
        self
    }

    /// Adds a user's router that others hold, too.
    pub fn shared_router(mut self, router: Arc<dyn Router>) -> Self {
        self.routers.push(Member::User(router));
        self
    }

    /// Adds a rule that stays. For one that can be replaced, see [`Chain::set_rule`].
    pub fn rule(mut self, rule: impl RuleRouter + 'static) -> Self {
        self.routers.push(Member::Rule(Arc::new(rule)));
        self
    }

    /// Whether an empty result ends the chain (default `true`, as `dubbo.router.should-fail-fast`). If not, the routers behind it are
    /// still asked, with nothing to choose from.
    pub const fn fail_fast(mut self, fail_fast: bool) -> Self {
        self.fail_fast = fail_fast;
        self
    }

    /// How rules from the registry are read; default [`Dialect::Dubbo31`].
    pub const fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// The chain. Routers that the consumer's parameter `router` names with a `-` in front are left out; `-default` leaves out all that
    /// were added so far.
    pub fn build(self) -> Chain {
        let excluded: Vec<&str> = self
            .consumer
            .list_param(keys::ROUTER)
            .into_iter()
            .filter_map(|name| name.strip_prefix('-'))
            .collect();
        let stays = |name: &str| !excluded.contains(&name) && !excluded.contains(&"default");
        let routers = self.routers.into_iter().filter(|member| stays(member.name())).collect();
        Chain {
            routers,
            fail_fast: self.fail_fast,
            dialect: self.dialect,
            rules: Mutex::default(),
            changes: Changes::new(),
            consumer: self.consumer,
        }
    }
}
