//! Revisions: those of recorded services are the recorded ones, and an instance shows that of the metadata that can be had for it.

use std::collections::BTreeMap;

use dubhe::Url;
use dubhe_discovery::{MetadataInfo, ServiceInfo, revision, service_info};

use crate::applications::{LOCAL, Mode, PROVIDER, Provider, REMOTE, application, ask, registry};
use crate::recorded::{self, Recording};
use crate::stores::{Store, on_every_store};

on_every_store! {
    an_instance_shows_the_revision_of_what_its_metadata_service_answers
    an_instance_shows_the_revision_of_its_metadata_in_the_report
    an_instance_answers_what_it_reports
    metadata_is_the_same_wherever_it_is_kept
    services_in_both_models_have_the_metadata_of_their_urls
}

fn of(info: &MetadataInfo) -> String {
    revision(info.app.as_deref(), &info.services)
}

/// The metadata that a recorded provider put into the report.
fn reported(recording: &Recording) -> MetadataInfo {
    serde_json::from_str(&recording.below("/dubbo/metadata/demo-provider").data).unwrap()
}

// C102
#[test]
fn reported_services_have_the_recorded_revisions() {
    for recording in [recorded::c(), recorded::f()] {
        let info = reported(&recording);
        assert_eq!(of(&info), recording.revision(), "recording {}", recording.name);
        assert_eq!(info.revision, Some(recording.revision()));
    }
}

// C102
#[test]
fn the_same_services_with_local_metadata_have_the_recorded_revisions() {
    for (remote, local) in [(recorded::c(), recorded::b()), (recorded::f(), recorded::e())] {
        let mut info = reported(&remote);
        for service in info.services.values_mut() {
            service.params.insert("metadata-type".to_owned(), "local".to_owned());
        }
        assert_eq!(of(&info), local.revision(), "recording {}", local.name);
    }
}

// C102
#[test]
fn services_registered_by_interface_have_the_recorded_revisions() {
    for recording in [recorded::a(), recorded::d()] {
        let names = recording.nodes.iter().filter_map(|node| node.path.split_once("/providers/"));
        let services: BTreeMap<String, ServiceInfo> = names
            .map(|(_, name)| {
                let url = Url::parse_encoded(name).unwrap();
                // 3.3 adds it to what it registers by application.
                let url =
                    if recording.name == 'd' { url.with_param("REGISTRY_CLUSTER", "default") } else { url };
                let service = service_info(&url);
                (service.match_key(), service)
            })
            .collect();
        assert_eq!(services.len(), 2);
        assert_eq!(revision(Some(PROVIDER), &services), recording.revision(), "recording {}", recording.name);
    }
}

/// What is on the node of the instance.
async fn metadata_of_instance(store: &dyn Store, provider: &Provider) -> BTreeMap<String, String> {
    let instance: serde_json::Value = serde_json::from_str(&store.text(&provider.instance()).await).unwrap();
    serde_json::from_value(instance["payload"]["metadata"].clone()).unwrap()
}

pub(crate) async fn shown_revision(store: &dyn Store, provider: &Provider) -> String {
    metadata_of_instance(store, provider).await.remove("dubbo.metadata.revision").unwrap()
}

async fn in_the_report(store: &dyn Store, revision: &str) -> MetadataInfo {
    serde_json::from_str(&store.text(&format!("/dubbo/metadata/{PROVIDER}/{revision}")).await).unwrap()
}

// C102
async fn an_instance_shows_the_revision_of_what_its_metadata_service_answers(store: &dyn Store) {
    let provider = Provider::start(store, LOCAL).await;
    let metadata = metadata_of_instance(store, &provider).await;
    let shown = &metadata["dubbo.metadata.revision"];
    assert_eq!(metadata["dubbo.metadata.storage-type"], "local");
    let info = ask(PROVIDER, &provider.address(), shown).await.expect("metadata of this revision");
    assert_eq!((&of(&info), info.revision.as_ref()), (shown, Some(shown)));
    assert_eq!(info.services.len(), 2);
    assert_eq!(ask(PROVIDER, &provider.address(), "unknown").await, None);
    let names = store.paths().await;
    assert!(
        !names.iter().any(|path| path.starts_with("/dubbo/metadata/demo-provider")),
        "nothing is reported"
    );
    provider.application.shutdown().await;
}

// C102
async fn an_instance_shows_the_revision_of_its_metadata_in_the_report(store: &dyn Store) {
    let provider = Provider::start(store, REMOTE).await;
    let metadata = metadata_of_instance(store, &provider).await;
    let shown = &metadata["dubbo.metadata.revision"];
    assert_eq!(metadata["dubbo.metadata.storage-type"], "remote");
    assert!(!metadata.contains_key("dubbo.metadata-service.url-params"), "there is nobody to ask");
    let info = in_the_report(store, shown).await;
    assert_eq!((&of(&info), info.revision.as_ref()), (shown, Some(shown)));
    assert_eq!(info.services.len(), 2);
    provider.application.shutdown().await;
}

async fn an_instance_answers_what_it_reports(store: &dyn Store) {
    let mut builder = application(PROVIDER, store);
    let mut registry = registry(store);
    registry.parameters.insert("report-metadata".to_owned(), "true".to_owned());
    builder.config().registry = Some(registry);
    let provider = Provider::with_demo(builder, LOCAL).await;
    provider.export_greet().await;
    provider.application.announce().await.unwrap();
    let shown = shown_revision(store, &provider).await;
    let answer = ask(PROVIDER, &provider.address(), &shown).await;
    assert_eq!(answer, Some(in_the_report(store, &shown).await));
    provider.application.shutdown().await;
}

async fn metadata_is_the_same_wherever_it_is_kept(store: &dyn Store) {
    let local = Provider::start(store, LOCAL).await;
    let remote = Provider::start(store, REMOTE).await;
    let answer = ask(PROVIDER, &local.address(), &shown_revision(store, &local).await).await.unwrap();
    let stored = in_the_report(store, &shown_revision(store, &remote).await).await;
    let comparable = |info: MetadataInfo| {
        let mut services = info.services;
        for service in services.values_mut() {
            service.port = 0;
            service.params.remove("metadata-type");
        }
        (info.app, services)
    };
    assert_eq!(comparable(answer), comparable(stored));
    local.application.shutdown().await;
    remote.application.shutdown().await;
}

async fn services_in_both_models_have_the_metadata_of_their_urls(store: &dyn Store) {
    let provider = Provider::start(store, Mode::default()).await;
    let shown = shown_revision(store, &provider).await;
    let info = ask(PROVIDER, &provider.address(), &shown).await.unwrap();
    let paths = store.paths().await;
    let names = paths.iter().filter_map(|path| path.split_once("/providers/"));
    let registered: BTreeMap<String, ServiceInfo> = names
        .map(|(_, name)| service_info(&Url::parse_encoded(name).unwrap()))
        .map(|service| (service.match_key(), service))
        .collect();
    assert_eq!(info.services, registered);
    provider.application.shutdown().await;
}
