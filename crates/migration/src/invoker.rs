//! One reference's invoker: two sides, one decision per call.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::Invoker;
use dubhe_core::mapping::Applications;
use dubhe_core::migration::AddressComparator;
use dubhe_core::observation::Observation;
use dubhe_core::response::Response;
use tokio::sync::watch;
use tracing::Instrument;

use crate::comparator::ThresholdComparator;
use crate::explain::MigrationExplanation;
use crate::lookup::{Effective, Lookup, Properties};
use crate::rule_source::RuleInForce;
use crate::side::{SideFactory, SideKind};
use crate::slot::Slot;
use crate::snapshot::{Held, Pass, Snapshot};
use crate::state::{MigrationState, SideState};
use crate::switcher::{Shared, Switcher, Wishes};

/// How often a call that found no provider, and so was not sent, may look for one on another side while sides come and go.
const MOST_CHANGES: usize = 3;

/// What a [`MigrationInvoker`] is made of.
#[derive(Debug)]
pub struct MigrationParts {
    /// The consumer's URL.
    pub consumer: Url,
    /// Makes the sides.
    pub factory: Arc<dyn SideFactory>,
    /// The application's rule; none: it says nothing.
    pub rules: Option<watch::Receiver<Arc<RuleInForce>>>,
    /// The applications that provide the interface, for the rule's `applications` parts.
    pub applications: Option<watch::Receiver<Observation<Applications>>>,
    /// The application's properties.
    pub properties: Properties,
    /// What is in force whatever the rules say: [`Effective::application_only`] for registries that know applications only.
    pub fixed: Option<Effective>,
    /// All must agree before calls go another way. Default: [`ThresholdComparator`] alone.
    pub comparators: Vec<Arc<dyn AddressComparator>>,
    /// Decides which calls a proportion concerns.
    pub dice: Dice,
}

impl MigrationParts {
    /// The parts of a reference for which nothing is said: `APPLICATION_FIRST`.
    pub fn new(consumer: Url, factory: Arc<dyn SideFactory>) -> Self {
        Self {
            consumer,
            factory,
            rules: None,
            applications: None,
            properties: Properties::default(),
            fixed: None,
            comparators: vec![Arc::new(ThresholdComparator)],
            dice: Dice::default(),
        }
    }
}

/// A number from 0 to 99 for each call.
#[derive(Clone)]
pub struct Dice(Arc<dyn Fn() -> u8 + Send + Sync>);

impl Dice {
    /// Dice of one's own, for tests.
    pub fn new(throw: impl Fn() -> u8 + Send + Sync + 'static) -> Self {
        Self(Arc::new(throw))
    }
}

impl Default for Dice {
    /// Fair ones.
    fn default() -> Self {
        Self::new(|| fastrand::u8(0..100))
    }
}

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dice")
    }
}

/// A reference under migration.
///
/// Promises: a call loads one snapshot and decides by it; it never fails for want of a provider while one of the sides is live (a call that
/// found none on its side before anything was sent goes to the other); a side is closed only after no call can choose it, and
/// after its calls ended (10 s at most); dropping the invoker is closing it.
///
/// Differences from the reference (`MigrationInvoker`): a switch that finds too few addresses stays wanted and happens when they come, and
/// the new side stays subscribed meanwhile; the delay is waited for once, not twice, and ends early when addresses suffice; a switch
/// also waits for an open connection on the new side, while the old side has one.
#[derive(Debug)]
pub struct MigrationInvoker {
    shared: Arc<Shared>,
    dice: Dice,
    closing: watch::Sender<bool>,
    /// Ends with the task.
    running: watch::Receiver<()>,
}

impl MigrationInvoker {
    /// Begins to make the sides that are wanted; [`MigrationInvoker::ready`] tells when they are there. Called within a tokio runtime.
    pub fn start(parts: MigrationParts) -> Self {
        let lookup = Lookup::new(&parts.consumer, &parts.properties);
        let mut wishes =
            Wishes { lookup, rules: parts.rules, applications: parts.applications, fixed: parts.fixed };
        let wanted = wishes.effective();
        let snapshot = Snapshot {
            step: None,
            preferred: SideKind::Interface,
            proportion: wanted.proportion,
            interface: None,
            application: None,
            closed: false,
        };
        let state = MigrationState {
            step: None,
            wanted: wanted.clone(),
            preferred: SideKind::Interface,
            interface: SideState::Absent,
            application: SideState::Absent,
            blocked: None,
            closed: false,
        };
        let span = tracing::info_span!("migration", rpc.service = %parts.consumer.service_key());
        let shared = Arc::new(Shared {
            consumer: parts.consumer,
            snapshot: ArcSwap::from_pointee(snapshot),
            state: watch::Sender::new(state),
        });
        let interface = Slot::new(SideKind::Interface, Arc::clone(&parts.factory));
        let application = Slot::new(SideKind::Application, parts.factory);
        let switcher =
            Switcher::new(Arc::clone(&shared), wishes, wanted, parts.comparators, interface, application);
        let (closing, close) = watch::channel(false);
        let (alive, running) = watch::channel(());
        let task = async move {
            switcher.run(close).await;
            drop(alive);
        };
        tokio::spawn(task.instrument(span));
        Self { shared, dice: parts.dice, closing, running }
    }

    /// Waits until each side that the wanted step needs was made, or failed to be for the first time.
    pub async fn ready(&self) {
        let mut state = self.state();
        // The sender is this value's own; it does not end.
        let _ = state.wait_for(|state| state.closed || state.is_attempted()).await;
    }

    /// Where the migration stands, now and from now on.
    pub fn state(&self) -> watch::Receiver<MigrationState> {
        self.shared.state.subscribe()
    }

    /// Both sides, the decision, and what blocks a switch.
    pub fn explain(&self) -> MigrationExplanation {
        let state = self.shared.state.borrow().clone();
        let snapshot = self.shared.snapshot.load();
        MigrationExplanation::new(&self.shared.consumer, state, &snapshot)
    }

    /// Refuses new calls, lets the others end, and closes both sides. Goes on when this future is dropped. Idempotent.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        // Ends with an error when the task is over, which is what is waited for.
        let _ = self.running.clone().changed().await;
    }

    /// A place on the side that the snapshot says.
    fn enter(&self) -> Result<Pass, RpcError> {
        loop {
            let snapshot = self.shared.snapshot.load();
            let Some(held) = snapshot.pick(|| (self.dice.0)()) else {
                return Err(self.no_side(&snapshot));
            };
            // A side that leaves is in no snapshot any more: the next one that is loaded is newer.
            if let Some(pass) = held.enter() {
                return Ok(pass);
            }
        }
    }

    /// A place on a side that can take a call which found nobody on `tried`: the other side, or the same when it has somebody again.
    fn rescue(&self, tried: &Arc<Held>, error: &RpcError) -> Option<Pass> {
        loop {
            let snapshot = self.shared.snapshot.load();
            // With a list that routing left empty, the same side says the same again.
            let is_back = || {
                let emptied = error.code() == ErrorCode::Forbidden;
                snapshot.side(tried.kind).filter(|held| emptied && held.is_available())
            };
            if let Some(pass) = snapshot.rescue(tried).or_else(is_back)?.enter() {
                return Some(pass);
            }
        }
    }

    async fn call(&self, invocation: Invocation) -> Result<Response, RpcError> {
        let mut place = self.enter()?;
        let mut changes = 0;
        loop {
            // A copy also where there is one side now: the other may come and this one go while the call runs.
            let error = match place.held.side.invoker().invoke(invocation.clone()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if changes == MOST_CHANGES || !is_for_want_of_providers(&error, &place.held) {
                return Err(error);
            }
            let Some(next) = self.rescue(&place.held, &error) else {
                return Err(self.with_other_side(error, &place.held));
            };
            tracing::debug!(%error, from = %place.held.kind, to = %next.held.kind, "no provider on this side, another try");
            changes += 1;
            // The side before may go now.
            place = next;
        }
    }

    fn no_side(&self, snapshot: &Snapshot) -> RpcError {
        let service = self.shared.consumer.service_key();
        if snapshot.closed {
            return RpcError::new(ErrorCode::Unknown, format!("the reference of {service} was closed"));
        }
        let state = self.shared.state.borrow();
        RpcError::new(
            ErrorCode::NoInvokerAvailableAfterFilter,
            format!(
                "no provider available for the service {service} from the consumer {}: with the migration step {}, the interface-level \
                 side is {}, the application-level side is {}",
                self.shared.consumer.host(),
                state.wanted.step,
                state.interface,
                state.application,
            ),
        )
    }

    /// An error for want of providers, with what the other side has.
    fn with_other_side(&self, error: RpcError, tried: &Held) -> RpcError {
        let other = tried.kind.other();
        let snapshot = self.shared.snapshot.load();
        let has = match snapshot.side(other) {
            Some(held) => format!("has {}", held.status()),
            None => format!("is {}", self.shared.state.borrow().side(other)),
        };
        let message = format!("{} (on the {} side; the {other} side {has})", error.message(), tried.kind);
        error.with_message(message)
    }
}

/// Whether nothing was sent because the side has nobody to send it to.
fn is_for_want_of_providers(error: &RpcError, side: &Held) -> bool {
    if error.delivery() != Delivery::NotSent {
        return false;
    }
    match error.code() {
        ErrorCode::Forbidden | ErrorCode::NoInvokerAvailableAfterFilter => true,
        // Closed, or the last connection was lost after it was looked at.
        ErrorCode::Unknown | ErrorCode::Network => !side.is_available(),
        _ => false,
    }
}

impl Invoker for MigrationInvoker {
    fn url(&self) -> &Url {
        &self.shared.consumer
    }

    fn is_available(&self) -> bool {
        self.shared.snapshot.load().sides().any(|side| side.is_available())
    }

    fn invoke(&self, invocation: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.call(invocation))
    }
}

impl Drop for MigrationInvoker {
    fn drop(&mut self) {
        // The task closes the sides and ends.
        self.closing.send_replace(true);
    }
}
