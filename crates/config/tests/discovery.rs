//! Configuration of application-level discovery and of migration, as users write it.

use std::collections::BTreeMap;

use dubhe_config::{
    ApplicationConfig, ConfigCenterConfig, DubboConfig, MetadataReportConfig, ReferenceConfig, RegistryConfig,
};

const WHOLE: &str = r#"
dubbo:
  application:
    name: order-service
    register-mode: instance
    metadata-type: remote
    metadata-service-port: 20990
    metadata-service-protocol: dubbo
    register-consumer: false
    migration:
      step: FORCE_APPLICATION
      threshold: 0.5
      delay: 2000
      file: rules/migration.yaml
    service-discovery:
      migration: FORCE_INTERFACE
  registry:
    address: zookeeper://192.0.2.1:2181
    register-mode: all
    use-as-config-center: false
    use-as-metadata-center: false
    subscribed-services: user-service,stock-service
    enable-empty-protection: true
  config-center:
    address: 192.0.2.2:2181,192.0.2.3:2181
    protocol: zookeeper
    port: 2182
    username: reader
    password: secret
    group: shop
    namespace: fleet
    timeout: 3000
    check: false
    parameters:
      session: 20000
  metadata-report:
    address: zookeeper://192.0.2.4:2181
    group: shop
    timeout: 4000
    check: true
  consumer:
    provided-by: shop
  references:
    com.example.Greeter:
      provided-by: user-service,stock-service
"#;

fn whole() -> DubboConfig {
    DubboConfig::from_yaml(WHOLE).expect("the text is right")
}

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[test]
fn an_application_says_how_it_registers_and_migrates() {
    let application = whole().application;
    assert_eq!(application.register_mode.as_deref(), Some("instance"));
    assert_eq!(application.metadata_type.as_deref(), Some("remote"));
    assert_eq!(application.metadata_service_port, Some(20_990));
    assert_eq!(application.metadata_service_protocol.as_deref(), Some("dubbo"));
    assert_eq!(application.register_consumer, Some(false));
    assert_eq!(application.migration.step.as_deref(), Some("FORCE_APPLICATION"));
    assert_eq!(application.migration.threshold, Some(0.5));
    assert_eq!(application.migration.delay, Some(2_000));
    assert_eq!(application.migration.file.as_deref(), Some("rules/migration.yaml"));
    assert_eq!(application.service_discovery.migration.as_deref(), Some("FORCE_INTERFACE"));
}

/// As recorded of 3.1 and 3.3: what is set is there, and nothing else; nothing of migration ever is.
#[test]
fn an_applications_urls_say_how_it_registers_but_not_how_it_migrates() {
    let expected = [
        ("application", "order-service"),
        ("register-mode", "instance"),
        ("metadata-type", "remote"),
        ("metadata-service-port", "20990"),
        ("metadata-service-protocol", "dubbo"),
        ("register.consumer", "false"),
    ];
    assert_eq!(whole().application.url_params(), map(expected));
    let silent = ApplicationConfig { name: "a".to_owned(), ..Default::default() };
    assert_eq!(silent.url_params(), map([("application", "a")]));
}

#[test]
fn a_registrys_url_says_its_mode_and_fallback_but_not_what_else_it_is_used_as() {
    let registry = whole().registry.unwrap();
    assert_eq!(registry.use_as_config_center, Some(false));
    assert_eq!(registry.use_as_metadata_center, Some(false));
    let expected = [
        ("register-mode", "all"),
        ("subscribed-services", "user-service,stock-service"),
        ("enable-empty-protection", "true"),
    ];
    assert_eq!(registry.url_params(), map(expected));
    assert_eq!(RegistryConfig::at("memory://local").url_params(), map([]));
}

#[test]
fn a_config_centre_has_a_namespace_and_a_group() {
    let center = whole().config_center.unwrap();
    assert_eq!(center.address, "192.0.2.2:2181,192.0.2.3:2181");
    assert_eq!((center.protocol.as_deref(), center.port), (Some("zookeeper"), Some(2182)));
    assert_eq!((center.username.as_deref(), center.password.as_deref()), (Some("reader"), Some("secret")));
    let expected = [
        ("group", "shop"),
        ("namespace", "fleet"),
        ("timeout", "3000"),
        ("check", "false"),
        ("session", "20000"),
    ];
    assert_eq!(center.url_params(), map(expected));
    let silent = ConfigCenterConfig::at("memory://local");
    assert_eq!((silent.address.as_str(), silent.url_params()), ("memory://local", map([])));
}

#[test]
fn a_metadata_centre_has_a_group_and_no_namespace() {
    let report = whole().metadata_report.unwrap();
    assert_eq!(report.address, "zookeeper://192.0.2.4:2181");
    assert_eq!(report.url_params(), map([("group", "shop"), ("timeout", "4000"), ("check", "true")]));
    assert_eq!(MetadataReportConfig::at("memory://local").url_params(), map([]));
    let text = "dubbo:\n  metadata-report:\n    namespace: fleet\n";
    assert!(DubboConfig::from_yaml(text).unwrap_err().to_string().contains("namespace"));
}

#[test]
fn a_reference_names_the_applications_that_offer_it() {
    let config = whole();
    assert_eq!(config.consumer.url_params(), map([("provided-by", "shop")]));
    let greeter = config.references["com.example.Greeter"].url_params();
    assert_eq!(greeter, map([("provided-by", "user-service,stock-service")]));
    assert_eq!(ReferenceConfig::default().url_params(), map([]));
}

#[test]
fn properties_of_migration_have_their_full_names() {
    let expected = [
        ("dubbo.application.migration.step", "FORCE_APPLICATION"),
        ("dubbo.application.migration.threshold", "0.5"),
        ("dubbo.application.migration.delay", "2000"),
        ("dubbo.application.service-discovery.migration", "FORCE_INTERFACE"),
    ];
    assert_eq!(whole().properties(), map(expected));
    assert_eq!(DubboConfig::default().properties(), map([]));
}

#[test]
fn a_whole_number_is_a_threshold_too() {
    let text = "dubbo:\n  application:\n    migration:\n      threshold: 1\n";
    let properties = DubboConfig::from_yaml(text).unwrap().properties();
    assert_eq!(properties, map([("dubbo.application.migration.threshold", "1")]));
}

#[test]
fn environment_variables_beat_the_file() {
    let variables = map([
        ("DUBBO_APPLICATION_REGISTER_MODE", "interface"),
        ("DUBBO_APPLICATION_METADATA_TYPE", "local"),
        ("DUBBO_APPLICATION_MIGRATION_STEP", "APPLICATION_FIRST"),
        ("DUBBO_CONFIG_CENTER_ADDRESS", "zookeeper://192.0.2.8:2181"),
        ("DUBBO_METADATA_REPORT_ADDRESS", "zookeeper://192.0.2.9:2181"),
    ]);
    for config in [whole(), DubboConfig::default()] {
        let config = config.with_environment(variables.clone()).unwrap();
        assert_eq!(config.application.register_mode.as_deref(), Some("interface"));
        assert_eq!(config.application.metadata_type.as_deref(), Some("local"));
        assert_eq!(config.application.migration.step.as_deref(), Some("APPLICATION_FIRST"));
        assert_eq!(config.config_center.unwrap().address, "zookeeper://192.0.2.8:2181");
        assert_eq!(config.metadata_report.unwrap().address, "zookeeper://192.0.2.9:2181");
    }
    // What the file says beside the address stays.
    let config = whole().with_environment(variables).unwrap();
    assert_eq!(config.config_center.unwrap().namespace.as_deref(), Some("fleet"));
}

#[test]
fn misspelt_keys_are_refused_in_the_inner_sections_too() {
    for (section, known) in [
        ("application:\n    migration:\n      stepp: 1", "step"),
        ("config-center:\n    adress: a", "address"),
    ] {
        let error = DubboConfig::from_yaml(&format!("dubbo:\n  {section}\n")).unwrap_err().to_string();
        assert!(error.contains(known), "{error}");
    }
}

#[test]
fn secrets_of_centres_do_not_show_in_debug_output() {
    let text = "dubbo:\n  config-center:\n    address: zookeeper://fleet:secret@192.0.2.1:2181?password=secret\n    password: \
                secret\n  metadata-report:\n    address: zookeeper://fleet:secret@192.0.2.2:2181\n    password: secret\n    \
                parameters:\n      password: secret\n";
    let shown = format!("{:?}", DubboConfig::from_yaml(text).unwrap());
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("192.0.2.1:2181") && shown.contains("192.0.2.2:2181"), "{shown}");
}
