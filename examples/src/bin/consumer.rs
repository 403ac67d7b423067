//! Calls the greeter once and prints what it says.
//!
//! `cargo run --package dubhe-examples --bin consumer -- zookeeper://127.0.0.1:2181`

use dubhe::Dubhe;
use dubhe_examples::{Greeter, GreeterClient};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let registry = std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let dubhe = Dubhe::builder("greeter-consumer").registry(registry).start().await?;
    let greeter = dubhe.refer::<GreeterClient>().await?;
    let greeting = greeter.say_hello("world".to_owned()).await?;
    println(&format!("{} (from {})", greeting.text, greeting.provider));
    dubhe.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program talks to its user")]
fn println(line: &str) {
    println!("{line}");
}
