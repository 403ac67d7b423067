use std::sync::Arc;

use dubhe_common::{Configurators, RuleTarget, Url, UrlFactory, keys};

/// The override rules of one service as one consumer applies them to the addresses of providers.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// One entry per rule, in the order in which they apply.
    rules: Vec<Rule>,
    /// Counts the changes, so that an address knows by which rules it was made.
    revision: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// What `application` the rule names; `None` for any.
    application: Option<Box<str>>,
    rule: Configurators,
}

impl Overrides {
    /// Takes the full list over; `true` when the rules are others than before.
    pub(crate) fn replace(&mut self, urls: &Arc<[Url]>) -> bool {
        let sorted = Configurators::from_notified(urls).unwrap_or_default();
        let rules: Vec<Rule> = sorted
            .rules()
            .iter()
            .filter_map(|url| {
                let rule = Configurators::from_notified(std::slice::from_ref(url))?;
                let application = url.param(keys::APPLICATION).or_else(|| url.user()).map(Box::from);
                Some(Rule { application, rule })
            })
            .collect();
        if rules == self.rules {
            return false;
        }
        self.rules = rules;
        self.revision += 1;
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// `address` (of `provider`, merged for `consumer`) with what the rules set; the same value when they set nothing.
    ///
    /// A rule that names an application is meant for that of the consumer, as in Dubbo, or for that of the provider: the latter is
    /// what an operator reads on the address (Dubbo compares only the consumer's, so that such rules never matched).
    pub(crate) fn apply(&self, address: Url, provider: &Url, consumer: &Url, factory: &UrlFactory) -> Url {
        if self.rules.is_empty() {
            return address;
        }
        let own = consumer.application().unwrap_or("");
        let of_provider = provider.application().unwrap_or("");
        let result = self.rules.iter().fold(address.clone(), |url, rule| {
            let application = match &rule.application {
                Some(wanted) if **wanted == *of_provider => of_provider,
                _ => own,
            };
            let target = RuleTarget { side: keys::side::CONSUMER, application, local_host: consumer.host() };
            rule.rule.apply(&url, &target)
        });
        // Addresses with equal settings share them, whatever rule made them.
        if result.ptr_eq(&address) { address } else { factory.adopt(&result) }
    }
}
