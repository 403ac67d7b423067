//! When a program is asked to stop.

use std::io::BufRead;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Listens for SIGTERM, SIGINT, and (if `with_input`) lines and the end of standard input: so the program cannot outlive its parent.
pub(crate) fn listen(with_input: bool) -> Result<End> {
    let (sender, asked) = watch::channel(false);
    let (orders, lines) = mpsc::unbounded_channel();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let by_signal = sender.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        by_signal.send_replace(true);
    });
    if with_input {
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if orders.send(line).is_err() {
                    break;
                }
            }
            sender.send_replace(true);
        });
    }
    Ok(End { asked, lines })
}

/// What the program is asked for from outside.
#[derive(Debug)]
pub(crate) struct End {
    asked: watch::Receiver<bool>,
    lines: mpsc::UnboundedReceiver<String>,
}

impl End {
    /// Waits until the program was asked to stop.
    pub(crate) async fn asked(&mut self) {
        if self.asked.wait_for(|asked| *asked).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }

    /// The next line of standard input; none once the program was asked to stop.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let Self { asked, lines } = self;
        tokio::select! {
            biased;
            Some(line) = lines.recv() => Some(line),
            Ok(_) = asked.wait_for(|asked| *asked) => None,
            else => std::future::pending().await,
        }
    }
}
