//! ZooKeeper's four-letter words: one word in, plain text out, connection closed.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a server may take for an answer. A paused one never answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the server at `address` and returns its whole answer.
pub(crate) async fn ask(address: &str, word: &str) -> Result<String> {
    match tokio::time::timeout(PATIENCE, exchange(address, word)).await {
        Ok(answer) => answer.with_context(|| format!("asking zookeeper at {address} for {word:?}")),
        Err(_) => bail!("zookeeper at {address} did not answer {word:?} within {PATIENCE:?}"),
    }
}

async fn exchange(address: &str, word: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer).await {
        // The server resets some connections after its answer; what came before is complete.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !answer.is_empty() => {}
        result => drop(result?),
    }
    String::from_utf8(answer).context("the answer is not text")
}
