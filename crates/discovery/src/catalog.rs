//! The services of a revision by interface, for those who look for one.

use std::collections::HashMap;
use std::sync::Arc;

use dubhe_core::metadata::{MetadataInfo, ServiceInfo};

/// What the instances of one revision offer. Found by interface, whatever the path of a service is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    by_interface: HashMap<Box<str>, Vec<Arc<ServiceInfo>>>,
}

impl Catalog {
    /// The services of `info`. Those that are the same in one of `others`, such as the former revision's, are shared.
    pub(crate) fn new<'a>(info: &MetadataInfo, others: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mut by_interface: HashMap<Box<str>, Vec<Arc<ServiceInfo>>> = HashMap::new();
        for service in info.services.values() {
            let same = others.clone().find_map(|other| {
                other.services(&service.name).iter().find(|known| known.as_ref() == service)
            });
            let service = same.map_or_else(|| Arc::new(service.clone()), Arc::clone);
            by_interface.entry(Box::from(&*service.name)).or_default().push(service);
        }
        Self { by_interface }
    }

    /// The services of an interface: one for each group, version and protocol.
    pub fn services(&self, interface: &str) -> &[Arc<ServiceInfo>] {
        self.by_interface.get(interface).map_or(&[], Vec::as_slice)
    }

    /// How many interfaces there are.
    pub fn len(&self) -> usize {
        self.by_interface.len()
    }

    /// Whether there is no service.
    pub fn is_empty(&self) -> bool {
        self.by_interface.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(names: &[&str]) -> MetadataInfo {
        let services = names.iter().map(|name| {
            let path = Some(format!("custom/{name}"));
            let service = ServiceInfo { name: (*name).to_owned(), path, ..ServiceInfo::default() };
            (service.match_key(), service)
        });
        MetadataInfo { services: services.collect(), ..MetadataInfo::default() }
    }

    #[test]
    fn a_service_with_a_path_of_its_own_is_found_by_its_interface() {
        let catalog = Catalog::new(&info(&["a.A", "a.B"]), std::iter::empty());
        assert_eq!(catalog.services("a.A").len(), 1);
        assert!(catalog.services("custom/a.A").is_empty());
        assert_eq!((catalog.len(), catalog.is_empty()), (2, false));
    }

    #[test]
    fn a_service_that_a_new_revision_did_not_change_is_the_same_value() {
        let before = Catalog::new(&info(&["a.A"]), std::iter::empty());
        let after = Catalog::new(&info(&["a.A", "a.B"]), std::iter::once(&before));
        assert!(Arc::ptr_eq(&before.services("a.A")[0], &after.services("a.A")[0]));
    }
}
