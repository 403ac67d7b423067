//! In what our trees may differ from recorded ones, and why. Whatever is not listed here must be the same.

use crate::differences::Difference;

/// How a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Both trees have it, with other values.
    Value,
    /// Only theirs has it.
    Missing,
    /// Only ours has it.
    Extra,
    /// A node that the server removes when it is empty; ours stays.
    Container,
}

use How::{Container, Extra, Missing, Value};

/// `Excuse(recordings, place, field, how)`: a field of that name, or all within it (`/*`), in each place that holds such a text.
#[derive(Debug)]
pub(crate) struct Excuse(&'static str, &'static str, &'static str, How);

pub(crate) const EXCUSES: &[Excuse] = &[
    // One start of one process on one machine. Host, port and revision are not here: where one of them stands, the other's has to.
    Excuse("abcdef", "", "pid", Value),
    Excuse("abcdef", "", "timestamp", Value),
    Excuse("abcdef", "/services/", "registrationTimeUTC", Value),
    Excuse("abc", "", "ipv6", Missing),
    // A test listens on one address only.
    Excuse("abcdef", "/provider/demo-provider", "anyhost", Missing),
    Excuse("a", "/providers/", "anyhost", Missing),
    Excuse("c", "<revision>", "anyhost", Missing),
    // Which framework it is.
    Excuse("abcdef", "", "release", Value),
    Excuse("abcdef", "/provider/demo-provider", "codeSource", Value),
    Excuse("abc", "/provider/demo-provider", "uniqueId", Extra),
    Excuse("def", "/provider/demo-provider", "uniqueId", Value),
    // The address of who made a node is in it by Java's ZooKeeper library, and nobody reads it. 3.1 took it for that of the provider too.
    Excuse("abcdef", "", "(data)", Value),
    Excuse("abc", "", "(address)", Value),
    // Nodes that servers remove when they are empty are not known to our trees.
    Excuse("abc", "/dubbo", "kind", Container),
    Excuse("abc", "/services", "kind", Container),
    // Who listens to rules in Java leaves the directories of the config centre, empty.
    Excuse("abcdef", "/dubbo/config", "*", Missing),
    // Providers do not listen to overrides yet, so that nobody makes this directory where there is no consumer.
    Excuse("ad", "GreetService/configurators", "*", Missing),
    // Services are announced when they are exported, and not when all are: what the first one alone was is published too.
    Excuse("cf", "<former revision>", "*", Extra),
    // The names of overloaded methods once, as 3.3 writes them.
    Excuse("abc", "", "methods (repeated)", Missing),
    // Rust knows the types of parameters as they are on the wire. Consoles read the rest, and no call needs it. The form is that of 3.3.
    Excuse("abcdef", "/provider/demo-provider", "returnType", Value),
    Excuse("abcdef", "/provider/demo-provider", "parameterTypes", Value),
    Excuse("abcdef", "/provider/demo-provider", "types/*", Value),
    Excuse("abcdef", "/provider/demo-provider", "types/*", Missing),
    Excuse("abcdef", "/provider/demo-provider", "types/*", Extra),
    Excuse("abc", "/provider/demo-provider", "parameters", Extra),
    // Java says the address that a consumer is registered with beside the URL; in the node's name it is the host.
    Excuse("abcdef", "/consumer/demo-consumer", "register.ip", Missing),
    // Settings of threads and files that Java 3.3 has.
    Excuse("def", "", "executor-management-mode", Missing),
    Excuse("def", "", "file-cache", Missing),
    // hessian2 alone, which is what is taken where nothing is said.
    Excuse("def", "", "prefer.serialization", Missing),
    // 3.3 says that it has the metadata service of 3.1; consumers of 3.1 skip that.
    Excuse("abc", "/services/", "meta-v", Extra),
    // One connection to the metadata service, as 3.1 wants it.
    Excuse("de", "/services/", "connections", Extra),
    // What 3.1 registers and 3.3 does not: consumers of both read it.
    Excuse("d", "/providers/", "pid", Extra),
    Excuse("d", "/providers/", "background", Extra),
    Excuse("f", "<revision>", "background", Extra),
    Excuse("f", "<revision>", "register-mode", Extra),
    // The name that the provider has for the registry means nothing to others.
    Excuse("f", "<revision>", "REGISTRY_CLUSTER", Missing),
];

impl Excuse {
    pub(crate) fn is_for(&self, recording: char) -> bool {
        self.0.contains(recording)
    }

    pub(crate) fn covers(&self, difference: &Difference) -> bool {
        let how = match (difference.theirs.as_deref(), difference.ours.as_deref()) {
            (Some(_), None) => Missing,
            (None, Some(_)) => Extra,
            (Some("container"), Some("persistent")) => Container,
            _ => Value,
        };
        how == self.3 && difference.place.contains(self.1) && self.covers_field(&difference.field)
    }

    fn covers_field(&self, field: &str) -> bool {
        let mut parts = field.split('/');
        match self.2.strip_suffix("/*") {
            Some(outer) => parts.next() == Some(outer),
            // A list's items have numbers.
            None => self.2 == "*" || parts.rfind(|part| part.parse::<u32>().is_err()) == Some(self.2),
        }
    }
}
