use super::*;
use crate::doubles::{World, instance, service, until};
use crate::own_instance::OwnInstance;

const FOO: &str = "a.Foo";

fn registry(world: &World, own: Option<&str>) -> ServiceDiscoveryRegistry {
    let own = own.map(|name| {
        let own = Arc::new(OwnMetadata::new(name));
        let (exported, name) = (Arc::clone(&own), name.to_owned());
        let announcer =
            Announcer::new(Arc::clone(&own), Arc::clone(&world.discovery) as _, None, move |info| {
                let urls = exported.exported();
                Ok(OwnInstance::new(&name, &urls, info.revision.as_deref().unwrap()).build()?)
            });
        (own, Arc::new(announcer))
    });
    ServiceDiscoveryRegistry::new(ServiceDiscoveryRegistryParts {
        url: Url::parse("zookeeper://192.0.2.1:2181?timeout=8000").unwrap(),
        session: watch::Sender::new(SessionState::Connected { epoch: 1 }).subscribe(),
        mapping: Arc::clone(&world.mapping) as _,
        listeners: Arc::clone(&world.listeners),
        rules: None,
        own,
    })
}

fn consumer(params: &str) -> Url {
    Url::parse(&format!("consumer://192.0.2.9/{FOO}?interface={FOO}{params}")).unwrap()
}

fn provider() -> Url {
    Url::parse(&format!("dubbo://192.0.2.1:20880/{FOO}?interface={FOO}&side=provider")).unwrap()
}

async fn sees(subscription: &mut Subscription, count: usize) -> Arc<ServiceView> {
    loop {
        let view = subscription.view();
        if view.providers.urls().is_some_and(|urls| urls.len() == count) {
            return view;
        }
        assert!(subscription.changed().await);
    }
}

// C03
#[tokio::test(start_paused = true)]
async fn metadata_that_cannot_be_had_is_trouble_and_no_empty_list() {
    let world = World::new();
    world.answers.fails("r1");
    world.discovery.set("app", [instance(1, "r1")]);
    let registry = registry(&world, None);
    let mut subscription = registry.subscribe(&consumer("&provided-by=app")).await.unwrap();
    let view = subscription.view();
    assert!(matches!(view.providers, Category::Unknown));
    assert!(view.trouble.as_ref().unwrap().contains("connection refused"), "{view:?}");
    world.answers.offers("r1", [service(FOO)]);
    assert_eq!(sees(&mut subscription, 1).await.trouble, None);
}

// C08
#[tokio::test(start_paused = true)]
async fn metadata_that_never_comes_does_not_hold_a_subscription_up_for_ever() {
    let world = World::new();
    world.answers.never_comes("r1");
    world.answers.offers("r2", [service(FOO)]);
    world.discovery.set("app", [instance(1, "r1")]);
    let registry = registry(&world, None);
    let started = Instant::now();
    let mut subscription = registry.subscribe(&consumer("&provided-by=app")).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(8));
    assert!(matches!(subscription.view().providers, Category::Unknown));
    world.discovery.set("app", [instance(1, "r1"), instance(2, "r2")]);
    let view = sees(&mut subscription, 1).await;
    assert_eq!(view.providers.urls().unwrap()[0].address(), "192.0.2.2:20880");
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_says_nothing_fails_only_who_checks() {
    let registry = registry(&World::new(), None);
    let started = Instant::now();
    registry.subscribe(&consumer("&check=false")).await.unwrap();
    assert_eq!(started.elapsed(), GRACE);
    let refused = registry.subscribe(&consumer("")).await;
    assert!(matches!(refused, Err(RegistryError::Failed { action: "subscribe", .. })));
    assert_eq!(registry.listeners().listening(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_mapping_that_cannot_be_written_is_tried_again_while_it_is_wanted() {
    let world = World::new();
    let registry = registry(&world, Some("app"));
    world.mapping.refuse(2);
    let started = Instant::now();
    registry.register(&provider()).await.unwrap();
    let mut applications = world.mapping.applications(FOO);
    until(&mut applications, |seen| seen.known.is_some()).await;
    assert_eq!(started.elapsed(), 3 * MAPPING_RETRY_INTERVAL, "the pauses double");
}

#[tokio::test(start_paused = true)]
async fn taking_back_what_was_replaced_leaves_the_mapping_of_what_replaced_it() {
    let world = World::new();
    let registry = registry(&world, Some("app"));
    world.mapping.refuse(2);
    registry.register(&provider()).await.unwrap();
    let newer = provider().with_param("timeout", 5);
    registry.register(&newer).await.unwrap();
    registry.unregister(&provider()).await.unwrap();
    let mut applications = world.mapping.applications(FOO);
    until(&mut applications, |seen| seen.known.is_some()).await;
}

#[tokio::test]
async fn rules_of_the_interface_stand_in_the_view_as_they_change() {
    let world = World::new();
    world.discovery.set("app", [instance(1, "r1")]);
    world.answers.offers("r1", [service(FOO)]);
    let rules = Arc::new(Rules::default());
    let registry = registry(&world, None);
    let registry = ServiceDiscoveryRegistry::new(ServiceDiscoveryRegistryParts {
        rules: Some(Arc::clone(&rules) as _),
        ..registry.parts
    });
    let asked = consumer("&provided-by=app&category=providers,configurators,routers");
    let mut subscription = registry.subscribe(&asked).await.unwrap();
    assert_eq!(rules.asked.lock().as_deref(), Some("configurators,routers"));
    let mut view = sees(&mut subscription, 1).await;
    assert!(view.routers.urls().is_none());
    let rule = Url::parse(&format!("condition://0.0.0.0/{FOO}?category=routers")).unwrap();
    let urls: Arc<[Url]> = Arc::from([rule]);
    rules.views.send_modify(|rules| {
        *rules = Arc::new(ServiceView { routers: Category::Known { urls, total: 1 }, ..Default::default() });
    });
    while view.routers.urls().is_none() {
        assert!(subscription.changed().await);
        view = subscription.view();
    }
    assert_eq!(view.providers.urls().map(|urls| urls.len()), Some(1));
    // Who asks for no rules gets none.
    *rules.asked.lock() = None;
    let _providers = registry.subscribe(&consumer("&provided-by=app&category=providers")).await.unwrap();
    assert_eq!(*rules.asked.lock(), None);
}

/// The interface-level half of a registry: rules that the test says.
#[derive(Debug)]
struct Rules {
    url: Url,
    views: watch::Sender<Arc<ServiceView>>,
    asked: Mutex<Option<String>>,
}

impl Default for Rules {
    fn default() -> Self {
        let url = Url::parse("zookeeper://192.0.2.1:2181").unwrap();
        Self { url, views: watch::Sender::new(Arc::default()), asked: Mutex::default() }
    }
}

#[async_trait]
impl Registry for Rules {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    async fn register(&self, _: &Url) -> Result<(), RegistryError> {
        unreachable!("nothing is registered here")
    }

    async fn unregister(&self, _: &Url) -> Result<(), RegistryError> {
        unreachable!("nothing is registered here")
    }

    async fn subscribe(&self, url: &Url) -> Result<Subscription, RegistryError> {
        *self.asked.lock() = Some(url.category().to_owned());
        Ok(Subscription::new(self.views.subscribe(), ()))
    }

    async fn lookup(&self, _: &Url) -> Result<Vec<Url>, RegistryError> {
        unreachable!("nobody looks up here")
    }

    async fn close(&self) {}
}

#[tokio::test]
async fn an_application_without_an_instance_of_its_own_registers_consumers_only() {
    let registry = registry(&World::new(), None);
    registry.register(&consumer("")).await.unwrap();
    registry.unregister(&consumer("")).await.unwrap();
    let refused = registry.register(&provider()).await;
    assert!(
        matches!(&refused, Err(RegistryError::Invalid(text)) if text.contains("192.0.2.1:20880")),
        "{refused:?}"
    );
    registry.unregister(&provider()).await.unwrap();
}
