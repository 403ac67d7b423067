//! Configuration files as users write them.

use dubhe_config::DubboConfig;

const WHOLE: &str = r#"
logging:
  level: debug
dubbo:
  application:
    name: order-service
    version: 1.0
  registry:
    address: zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181
    group: fleet
    timeout: 5000
    check: false
    parameters:
      weight: 50
  protocol:
    name: dubbo
    port: 20881
    threads: 50
  consumer:
    timeout: 3000
    check: false
  references:
    com.example.Greeter:
      version: 1.0.0
      group: g1
      retries: 0
      loadbalance: roundrobin
      methods:
        - name: sayHello
          timeout: 500
          retries: 1
  services:
    com.example.Orders:
      version: 2.0.0
      weight: 200
      token: "true"
"#;

#[test]
fn a_whole_file_is_read_and_other_sections_are_left_alone() {
    let config = DubboConfig::from_yaml(WHOLE).unwrap();
    assert_eq!(config.application.name, "order-service");
    assert_eq!(config.application.version.as_deref(), Some("1.0"));
    let registry = config.registry.unwrap();
    assert_eq!(registry.address, "zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181");
    assert_eq!(registry.url_params()["check"], "false");
    assert_eq!(registry.url_params()["weight"], "50");
    assert_eq!(config.protocol.unwrap().port, Some(20881));
    let greeter = config.references["com.example.Greeter"].url_params();
    assert_eq!(greeter["sayHello.timeout"], "500");
    assert_eq!(greeter["sayHello.retries"], "1");
    assert_eq!(greeter["loadbalance"], "roundrobin");
    assert_eq!(config.services["com.example.Orders"].url_params()["weight"], "200");
    assert_eq!(config.consumer.url_params()["timeout"], "3000");
}

#[test]
fn an_empty_file_is_an_empty_configuration() {
    assert_eq!(DubboConfig::from_yaml("").unwrap(), DubboConfig::default());
    assert_eq!(DubboConfig::from_yaml("# nothing\n").unwrap(), DubboConfig::default());
}

fn error(text: &str) -> String {
    DubboConfig::from_yaml(text).expect_err("the text is wrong").to_string()
}

#[test]
fn a_misspelt_key_is_refused_with_its_place_and_the_known_ones() {
    let text = error("dubbo:\n  registry:\n    adress: zookeeper://192.0.2.1:2181\n");
    assert!(text.contains("adress"), "{text}");
    assert!(text.contains("address"), "{text}");
    assert!(text.contains('3'), "the line is told: {text}");
}

#[test]
fn a_value_of_the_wrong_kind_is_refused() {
    let text = error("dubbo:\n  protocol:\n    port: twenty\n");
    assert!(text.contains("twenty") || text.contains("i32") || text.contains("integer"), "{text}");
}

#[test]
fn what_is_not_yaml_is_refused() {
    assert!(error("dubbo: [").starts_with("the configuration text"));
}

#[test]
fn a_missing_file_is_told_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dubbo.yaml");
    let text = DubboConfig::from_file(&path).unwrap_err().to_string();
    assert!(text.contains("dubbo.yaml"), "{text}");
}

#[test]
fn environment_variables_beat_the_file() {
    let config = DubboConfig::from_yaml(WHOLE).unwrap();
    let variables =
        [("DUBBO_REGISTRY_ADDRESS", "memory://local"), ("DUBBO_CONSUMER_TIMEOUT", "250"), ("PATH", "/bin")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = config.with_environment(variables).unwrap();
    assert_eq!(config.registry.unwrap().address, "memory://local");
    assert_eq!(config.consumer.timeout, Some(250));
}

#[test]
fn a_wrong_environment_variable_is_told_by_name() {
    let variables = [("DUBBO_PROTOCOL_PORT".to_owned(), "many".to_owned())];
    let text = DubboConfig::default().with_environment(variables).unwrap_err().to_string();
    assert_eq!(text, "the environment variable DUBBO_PROTOCOL_PORT=many is not a port number");
}

#[test]
fn the_wait_at_shutdown_has_the_name_that_dubbo_gives_it() {
    let config = DubboConfig::from_yaml("dubbo:\n  application:\n    name: a\n    shutwait: 3000\n").unwrap();
    assert_eq!(config.application.shutdown_wait, Some(3_000));
}

#[test]
fn a_delay_of_minus_one_is_none_as_in_dubbo() {
    let config = DubboConfig::from_yaml("dubbo:\n  provider:\n    delay: -1\n").unwrap();
    assert_eq!(config.provider.delay, Some(-1));
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let text = "dubbo:\n  registry:\n    address: zookeeper://fleet:secret@192.0.2.1:2181?password=secret\n    password: secret\n  \
                provider:\n    token: secret\n  services:\n    com.example.Orders:\n      token: secret\n";
    let config = DubboConfig::from_yaml(text).unwrap();
    assert!(!format!("{config:?}").contains("secret"), "{config:?}");
    assert!(format!("{config:?}").contains("192.0.2.1:2181"), "{config:?}");
}

#[test]
fn secrets_next_to_a_mistake_do_not_show_in_its_error() {
    let text = error(
        "dubbo:\n  registry:\n    password: secret\n    adress: zookeeper://fleet:secret@192.0.2.1:2181\n",
    );
    assert!(text.contains("adress") && text.contains('4'), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

// C72
#[test]
fn a_registry_says_how_it_is_chosen_among_several() {
    let text = "dubbo:\n  registries:\n    near:\n      address: zookeeper://192.0.2.1:2181\n      preferred: true\n      zone: \
                hangzhou\n      weight: 50\n    far:\n      address: zookeeper://192.0.2.2:2181\n      cluster: failover\n";
    let registries = DubboConfig::from_yaml(text).unwrap().registries;
    let params = |id: &str| {
        let params = registries[id].url_params().into_iter();
        params.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(params("near"), ["preferred=true", "weight=50", "zone=hangzhou"]);
    assert_eq!(params("far"), ["cluster=failover"]);
    let text = "dubbo:\n  registry:\n    address: memory://local\n    weight: much\n";
    let error = DubboConfig::from_yaml(text).unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
}
