//! When a program is asked to stop.

use std::io::Read;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes true at SIGTERM, SIGINT, or (if `with_input`) at the end of standard input: so the program cannot outlive its parent.
pub(crate) fn listen(with_input: bool) -> Result<End> {
    let (sender, receiver) = watch::channel(false);
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
            let mut ignored = [0; 64];
            while std::io::stdin().read(&mut ignored).is_ok_and(|length| length > 0) {}
            sender.send_replace(true);
        });
    }
    Ok(End(receiver))
}

/// Whether the program was asked to stop.
#[derive(Debug)]
pub(crate) struct End(watch::Receiver<bool>);

impl End {
    /// Waits until it was.
    pub(crate) async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}
