//! Addresses as URLs, for a directory that knows nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dubhe_common::{Url, UrlFactory, keys};
use dubhe_core::discovery::{
    ENDPOINTS, METADATA_SERVICE_PARAMS, METADATA_SERVICE_URLS, METADATA_SERVICE_VERSION, REVISION,
    STORAGE_TYPE, ServiceInstance,
};

use crate::mapped_service::ServiceAddress;

/// Metadata of an instance that is about discovery, or that says again what its address does.
const NO_PARAMETERS: [&str; 8] = [
    ENDPOINTS,
    METADATA_SERVICE_PARAMS,
    METADATA_SERVICE_URLS,
    METADATA_SERVICE_VERSION,
    REVISION,
    STORAGE_TYPE,
    keys::IPV6,
    keys::TIMESTAMP,
];

/// Patterns kept for the next list.
const TEMPLATES: usize = 8;

/// How far ahead an address is looked for when others before it have left.
const AHEAD: usize = 8;
/// So many new addresses of a list are looked for by going through the former one, more of them in a table.
const FEW: usize = 4;

/// The URLs of one service's addresses: parameters of the service before those of the instance; the consumer's, and
/// overrides, are put over them by the directory.
///
/// Instances alike share one set of parameters. An address that did not change is the same URL value, and a list that
/// did not change the same list.
#[derive(Debug)]
pub(crate) struct AddressUrls {
    factory: UrlFactory,
    addresses: Arc<[ServiceAddress]>,
    urls: Arc<[Url]>,
    templates: Vec<Template>,
}

/// A URL that only lacks host, port and time of start.
#[derive(Debug)]
struct Template {
    like: ServiceAddress,
    url: Url,
}

impl AddressUrls {
    pub(crate) fn new(factory: &UrlFactory) -> Self {
        Self {
            factory: factory.clone(),
            addresses: Arc::from([]),
            urls: Arc::from([]),
            templates: Vec::new(),
        }
    }

    /// The URLs of these addresses, in their order.
    pub(crate) fn of(&mut self, addresses: &Arc<[ServiceAddress]>) -> Arc<[Url]> {
        if Arc::ptr_eq(addresses, &self.addresses) {
            return Arc::clone(&self.urls);
        }
        let (old, old_urls) = (Arc::clone(&self.addresses), Arc::clone(&self.urls));
        let mut walk = Walk::new(&old);
        let mut urls = Vec::with_capacity(addresses.len());
        let mut made = Vec::new();
        for address in &**addresses {
            if let Some(same) = walk.next(address) {
                urls.push(old_urls[same].clone());
            } else {
                made.push(urls.len());
                urls.push(self.make(address));
            }
        }
        // Of what is not there any more some may be again what it was, such as an instance with a new revision.
        let gone: HashSet<&Url> = match made.is_empty() {
            true => HashSet::new(),
            false => walk.gone().map(|at| &old_urls[at]).collect(),
        };
        for at in made.into_iter().filter(|_| !gone.is_empty()) {
            // Equality ignores the time of start.
            let known = gone.get(&urls[at]).filter(|known| started(known) == started(&urls[at]));
            if let Some(known) = known {
                urls[at] = Url::clone(known);
            }
        }
        let is_same =
            urls.len() == old_urls.len() && urls.iter().zip(&*old_urls).all(|(one, other)| one.ptr_eq(other));
        self.addresses = Arc::clone(addresses);
        if !is_same {
            self.urls = Arc::from(urls);
        }
        Arc::clone(&self.urls)
    }

    fn make(&mut self, address: &ServiceAddress) -> Url {
        let found = self.templates.iter().position(|template| template.is_for(address));
        let at = found.unwrap_or_else(|| {
            if self.templates.len() == TEMPLATES {
                self.templates.remove(0);
            }
            self.templates.push(Template { like: address.clone(), url: self.template(address) });
            self.templates.len() - 1
        });
        let url = self.templates[at].url.to_builder().host(&address.instance.host).port(address.port);
        let url = match address.instance.metadata.get(keys::TIMESTAMP) {
            Some(timestamp) => url.param_if_absent(keys::TIMESTAMP, timestamp),
            None => url,
        };
        // All services of the instance share where it is.
        self.factory.adopt_all(&url.build())
    }

    fn template(&self, address: &ServiceAddress) -> Url {
        let (instance, service) = (&address.instance, &address.service);
        let url = Url::builder(&service.protocol, "", 0)
            .path(service.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(&service.name))
            .params(labels(instance))
            .params(&service.params)
            .param(keys::INTERFACE, &service.name)
            .param(keys::APPLICATION, &instance.application)
            .without_param(keys::GROUP)
            .without_param(keys::VERSION)
            .param(keys::GROUP, service.group.as_deref().unwrap_or_default())
            .param(keys::VERSION, service.version.as_deref().unwrap_or_default())
            .build();
        self.factory.adopt(&url)
    }
}

/// A former list, walked along with the present one: as a rule they are the same values in the same order, but for a few
/// that came or left.
struct Walk<'a> {
    former: &'a [ServiceAddress],
    at: usize,
    is_found: Vec<bool>,
    missed: usize,
    /// Places by parts. Made when the walk has lost its way.
    table: Option<HashMap<(usize, usize), usize>>,
}

impl<'a> Walk<'a> {
    fn new(former: &'a [ServiceAddress]) -> Self {
        Self { former, at: 0, is_found: vec![false; former.len()], missed: 0, table: None }
    }

    /// Where an address of the same values stood.
    fn next(&mut self, address: &ServiceAddress) -> Option<usize> {
        let ahead = self.former[self.at..].iter().take(AHEAD);
        let found = match ahead.zip(self.at..).find(|(former, _)| former.is(address)) {
            Some((_, at)) => at,
            None => self.find(address)?,
        };
        self.at = found + 1;
        self.is_found[found] = true;
        Some(found)
    }

    fn find(&mut self, address: &ServiceAddress) -> Option<usize> {
        self.missed += 1;
        if self.missed <= FEW || self.former.is_empty() {
            return self.former.iter().position(|former| former.is(address));
        }
        let of_parts = || self.former.iter().map(parts).zip(0..).collect();
        self.table.get_or_insert_with(of_parts).get(&parts(address)).copied()
    }

    /// The places of those that were not found.
    fn gone(&self) -> impl Iterator<Item = usize> {
        self.is_found.iter().zip(0..).filter(|(is_found, _)| !**is_found).map(|(_, at)| at)
    }
}

impl Template {
    fn is_for(&self, address: &ServiceAddress) -> bool {
        Arc::ptr_eq(&self.like.service, &address.service)
            && self.like.instance.application == address.instance.application
            && labels(&self.like.instance).eq(labels(&address.instance))
    }
}

/// What an instance says of itself beside what it needs to be found.
fn labels(instance: &ServiceInstance) -> impl Iterator<Item = (&String, &String)> {
    instance.metadata.iter().filter(|(name, _)| !NO_PARAMETERS.contains(&name.as_str()))
}

/// Addresses of values that are held along.
fn parts(address: &ServiceAddress) -> (usize, usize) {
    (Arc::as_ptr(&address.instance).addr(), Arc::as_ptr(&address.service).addr())
}

fn started(url: &Url) -> Option<&str> {
    url.raw_param(keys::TIMESTAMP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dubhe_core::metadata::ServiceInfo;

    fn service() -> Arc<ServiceInfo> {
        let params = [("timeout", "5"), ("release", "3.1.11"), ("zone", "of-service"), ("empty", "")];
        Arc::new(ServiceInfo {
            name: "a.A".to_owned(),
            group: Some("g".to_owned()),
            version: Some("1".to_owned()),
            protocol: "tri".to_owned(),
            port: 50051,
            path: Some("ctx/a.A".to_owned()),
            params: params.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        })
    }

    fn address(number: u8, service: &Arc<ServiceInfo>, labels: &[(&str, &str)]) -> ServiceAddress {
        let mut instance = ServiceInstance::new("demo", format!("192.0.2.{number}"), 20880)
            .with(REVISION, "r1")
            .with(ENDPOINTS, "[]")
            .with(keys::TIMESTAMP, "7");
        for (name, value) in labels {
            instance = instance.with(name, *value);
        }
        ServiceAddress { instance: Arc::new(instance), service: Arc::clone(service), port: 50051 }
    }

    #[test]
    fn what_the_service_says_goes_before_what_its_instance_says() {
        let one = address(1, &service(), &[("zone", "of-instance"), ("region", "eu"), ("version", "9")]);
        let urls = AddressUrls::new(&UrlFactory::new()).of(&Arc::from([one]));
        assert_eq!(
            urls[0].to_plain_string(),
            "tri://192.0.2.1:50051/ctx/a.A?application=demo&group=g&interface=a.A&region=eu&release=3.1.11&timeout=5&\
             timestamp=7&version=1&zone=of-service"
        );
    }

    #[test]
    fn instances_alike_share_their_parameters_and_unchanged_addresses_their_urls() {
        let service = service();
        let all: Vec<ServiceAddress> = (1..=5).map(|number| address(number, &service, &[])).collect();
        let mut urls = AddressUrls::new(&UrlFactory::new());
        let four: Arc<[ServiceAddress]> = all[..4].to_vec().into();
        let first = urls.of(&four);
        assert!(first[0].shared_params().ptr_eq(first[3].shared_params()));
        assert!(Arc::ptr_eq(&first, &urls.of(&four)));
        // Without the second, with a fifth; the third has another revision, the fourth was started again.
        let mut third = (*all[2].instance).clone();
        third = third.with(REVISION, "r2");
        let fourth = (*all[3].instance).clone().with(keys::TIMESTAMP, "8");
        let of = |instance| ServiceAddress { instance: Arc::new(instance), ..all[0].clone() };
        let next: Arc<[ServiceAddress]> = Arc::from([all[0].clone(), of(third), of(fourth), all[4].clone()]);
        let second = urls.of(&next);
        assert!(second[0].ptr_eq(&first[0]));
        assert!(second[1].ptr_eq(&first[2]));
        assert!(!second[2].ptr_eq(&first[3]) && second[2].param(keys::TIMESTAMP) == Some("8"));
        assert_eq!(second[3].host(), "192.0.2.5");
        assert!(second[3].shared_params().ptr_eq(first[0].shared_params()));
    }

    // registry.md 5.9: in the reference an instance with more metadata than before counts as unchanged.
    #[test]
    fn an_instance_that_gains_or_loses_a_label_is_another_address() {
        let service = service();
        let mut urls = AddressUrls::new(&UrlFactory::new());
        let mut of = |labels: &[(&str, &str)]| urls.of(&Arc::from([address(1, &service, labels)]))[0].clone();
        let (plain, labelled, changed) = (of(&[]), of(&[("env", "gray")]), of(&[("env", "blue")]));
        assert_eq!((plain.param("env"), labelled.param("env")), (None, Some("gray")));
        assert!(plain != labelled && labelled != changed);
        assert_eq!(of(&[]), plain);
    }

    #[test]
    fn urls_are_kept_whatever_the_order_of_a_list() {
        let service = service();
        let all: Vec<ServiceAddress> = (1..=60).map(|number| address(number, &service, &[])).collect();
        let mut urls = AddressUrls::new(&UrlFactory::new());
        let mut before: Arc<[ServiceAddress]> = Arc::from(&all[..]);
        let mut former = urls.of(&before);
        for now in [
            all.iter().rev().cloned().collect::<Vec<_>>(),
            all[20..].to_vec(),
            [&all[40..], &all[..3]].concat(),
            [&all[..10], &all[11..]].concat(),
        ] {
            let now: Arc<[ServiceAddress]> = Arc::from(now);
            let present = urls.of(&now);
            for (address, url) in now.iter().zip(&*present) {
                assert_eq!(url.host(), &*address.instance.host);
                let at = before.iter().position(|one| one.is(address));
                assert!(at.is_none_or(|at| url.ptr_eq(&former[at])));
            }
            (before, former) = (now, present);
        }
    }

    #[test]
    fn labels_set_instances_apart() {
        let service = service();
        let addresses: Arc<[ServiceAddress]> =
            (1..=20).map(|number| address(number, &service, &[("n", &number.to_string())])).collect();
        let urls = AddressUrls::new(&UrlFactory::new()).of(&addresses);
        assert!(urls.iter().zip(1..).all(|(url, number)| url.param("n") == Some(&*number.to_string())));
    }

    #[test]
    fn an_ipv6_instance_has_the_address_that_any_url_of_it_has() {
        let mut address = address(1, &service(), &[]);
        let instance = ServiceInstance { host: Arc::from("2001:db8::1"), ..(*address.instance).clone() };
        address.instance = Arc::new(instance);
        let url = AddressUrls::new(&UrlFactory::new()).of(&Arc::from([address]))[0].clone();
        let parsed = Url::parse(&url.to_full_string()).unwrap();
        assert_eq!((url.host(), url.address(), &url), (parsed.host(), parsed.address(), &parsed));
    }

    proptest::proptest! {
        #[test]
        fn no_metadata_makes_a_url_panic(
            name in ".{0,12}", protocol in ".{0,6}", path in proptest::option::of(".{0,12}"), host in ".{1,12}",
            params in proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..4),
            labels in proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..3),
        ) {
            let service = ServiceInfo {
                group: Some(name.clone()), version: Some(host.clone()), name, protocol, port: 1, path, params,
            };
            let mut instance = ServiceInstance::new("demo", host, 1);
            instance.metadata = labels;
            let one = ServiceAddress { instance: Arc::new(instance), service: Arc::new(service), port: 1 };
            let url = AddressUrls::new(&UrlFactory::new()).of(&Arc::from([one]))[0].clone();
            let _ = (url.address(), url.service_key(), Url::parse(&url.to_full_string()));
        }
    }
}
