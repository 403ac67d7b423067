//! What status reporters hear of an application.

use std::sync::{Arc, Mutex};

use dubhe::core::config_center::{ConfigCenter, MIGRATION_GROUP};
use dubhe::core::status_report::{StatusReport, StatusReporter};
use dubhe::{Url, config::RegistryConfig};
use dubhe_discovery::TreeConfigCenter;

use crate::support::{NamedShop, Shop, ShopClient, ShopService, World, loopback, until};

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl StatusReporter for Recorder {
    fn report(&self, report: &StatusReport) {
        self.0.lock().unwrap().push(format!("{} {}", report.kind(), report.to_json()));
    }
}

impl Recorder {
    /// Waits for so many reports, and takes all.
    async fn take(&self, count: usize) -> Vec<String> {
        until("reports", || self.0.lock().unwrap().len() >= count).await;
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[derive(Debug)]
struct Panicking;

impl StatusReporter for Panicking {
    fn report(&self, _: &StatusReport) {
        panic!("out of ink")
    }
}

fn shop() -> ShopService<NamedShop> {
    ShopService::new(NamedShop { name: "a".to_owned(), inside: Arc::default() })
}

/// The config centre that the registry of `world` doubles as.
fn rules(world: &World) -> TreeConfigCenter {
    let url = Url::parse("memory://local").unwrap();
    TreeConfigCenter::of_registry(&url, world.store.connect())
}

#[tokio::test]
async fn export_reference_and_switch_are_reported_in_order() {
    let world = World::new();
    let recorder = Arc::new(Recorder::default());
    let mut provider = world.builder("a").protocol(loopback(0));
    provider.extensions().status_reporters.push(Arc::clone(&recorder) as Arc<dyn StatusReporter>);
    let provider = provider.start().await.unwrap();
    provider.export(shop()).await.unwrap();
    assert_eq!(recorder.take(1).await, [r#"registration {"application":"a","status":"all"}"#]);
    provider.announce().await.unwrap();

    let mut consumer = world.builder("consumer");
    consumer.config().application.migration.step = Some("FORCE_INTERFACE".to_owned());
    consumer.extensions().status_reporters.push(Arc::clone(&recorder) as Arc<dyn StatusReporter>);
    let consumer = consumer.start().await.unwrap();
    // On a slow machine, a step is not to be reported as failed before it is reached.
    let shop = consumer.reference::<ShopClient>().param("migration.delay", 60).get().await.unwrap();
    assert_eq!(
        recorder.take(2).await,
        [
            r#"consumption {"application":"consumer","service":"dev.dubhe.test.Shop","type":"consumption","status":"interface"}"#,
            r#"migrationStepStatus {"originStep":"null","application":"consumer","service":"dev.dubhe.test.Shop","success":"true","newStep":"FORCE_INTERFACE","type":"migrationStepStatus"}"#,
        ]
    );
    let rule = "step: FORCE_APPLICATION";
    rules(&world).publish(MIGRATION_GROUP, "consumer.migration", rule).await.unwrap();
    assert_eq!(
        recorder.take(2).await,
        [
            r#"consumption {"application":"consumer","service":"dev.dubhe.test.Shop","type":"consumption","status":"app"}"#,
            r#"migrationStepStatus {"originStep":"FORCE_INTERFACE","application":"consumer","service":"dev.dubhe.test.Shop","success":"true","newStep":"FORCE_APPLICATION","type":"migrationStepStatus"}"#,
        ]
    );
    assert_eq!(shop.who().await.unwrap(), "a");
    consumer.shutdown().await;
    provider.shutdown().await;
    assert_eq!(recorder.take(0).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_register_mode_of_each_registry_is_reported() {
    for mode in ["all", "interface", "instance"] {
        let world = World::new();
        let recorder = Arc::new(Recorder::default());
        let registry = RegistryConfig {
            file_cache: Some(false),
            ..RegistryConfig::at(format!("memory://local?register-mode={mode}"))
        };
        let mut provider = dubhe::Dubhe::builder("a")
            .memory_store(&world.store)
            .registry_config(registry)
            .protocol(loopback(0));
        provider.extensions().status_reporters.push(Arc::clone(&recorder) as Arc<dyn StatusReporter>);
        let provider = provider.start().await.unwrap();
        provider.export(shop()).await.unwrap();
        let expected = format!(r#"registration {{"application":"a","status":"{mode}"}}"#);
        assert_eq!(recorder.take(1).await, [expected]);
        provider.service(shop()).group("g").register(false).export().await.unwrap();
        assert_eq!(recorder.take(0).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_reporter_that_panics_disturbs_neither_export_nor_reference() {
    let world = World::new();
    let mut builder = world.builder("a").protocol(loopback(0));
    builder.extensions().status_reporters.push(Arc::new(Panicking));
    let application = builder.start().await.unwrap();
    application.export(shop()).await.unwrap();
    let shop = application.reference::<ShopClient>().get().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "a");
}
