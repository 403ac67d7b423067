//! One node's data, followed and read as something else.

use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::NodeData;
use tokio::sync::watch;
use tracing::Instrument;

/// What the next observation of a node makes of what was known before. `None` as the data: the node does not exist.
pub(crate) trait Reading: Send + 'static {
    /// What the data is read as.
    type Value: Clone + PartialEq + Send + Sync + 'static;

    /// Reads the data; `before` is what was known.
    fn read(&mut self, data: Option<&NodeData>, before: Option<&Self::Value>) -> Self::Value;
}

/// Follows `source` for as long as the result has a receiver. What is known already is there at once; a value that
/// does not change is no news. Needs a tokio runtime.
pub(crate) fn follow<R: Reading>(
    mut source: watch::Receiver<Observation<Option<NodeData>>>,
    start: Observation<R::Value>,
    mut reading: R,
    span: tracing::Span,
) -> watch::Receiver<Observation<R::Value>> {
    let sender = watch::Sender::new(start);
    take(&mut source, &sender, &mut reading);
    let receiver = sender.subscribe();
    let following = async move {
        loop {
            tokio::select! {
                changed = source.changed() => match changed {
                    Ok(()) => take(&mut source, &sender, &mut reading),
                    // The tree is closed.
                    Err(_) => return,
                },
                () = sender.closed() => return,
            }
        }
    };
    tokio::spawn(following.instrument(span));
    receiver
}

fn take<R: Reading>(
    source: &mut watch::Receiver<Observation<Option<NodeData>>>,
    sender: &watch::Sender<Observation<R::Value>>,
    reading: &mut R,
) {
    // Out of the channel first: reading must not hold its lock.
    let seen = source.borrow_and_update().clone();
    sender.send_if_modified(|shown| {
        let before = shown.trouble.clone();
        let Some(data) = &seen.known else {
            if seen.trouble.is_some() {
                shown.trouble.clone_from(&seen.trouble);
            }
            return shown.trouble != before;
        };
        shown.trouble.clone_from(&seen.trouble);
        let value = reading.read(data.as_ref(), shown.known.as_ref());
        let is_news = shown.known.as_ref() != Some(&value);
        if is_news {
            shown.known = Some(value);
        }
        shown.stamp = later(shown.stamp, seen.stamp);
        is_news || shown.trouble != before
    });
}

/// The later of two stamps.
pub(crate) fn later(one: Stamp, other: Stamp) -> Stamp {
    one.max(other)
}
