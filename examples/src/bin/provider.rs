//! Offers a greeter until SIGTERM or Ctrl-C.
//!
//! `cargo run --package dubhe-examples --bin provider -- zookeeper://127.0.0.1:2181`

use dubhe::Dubhe;
use dubhe::config::ProtocolConfig;
use dubhe_examples::{GreeterService, Named};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let registry = std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let dubhe = Dubhe::builder("greeter-provider")
        .registry(registry)
        .protocol(ProtocolConfig::dubbo(20880))
        .start()
        .await?;
    let exported = dubhe.export(GreeterService::new(Named("example".to_owned()))).await?;
    for url in exported.urls() {
        eprintln(&format!("serving {url}"));
    }
    dubhe.run_until_signal().await;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a program talks to its user")]
fn eprintln(line: &str) {
    eprintln!("{line}");
}
