//! The one task that changes a reference's sides and steps.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use dubhe_common::Url;
use dubhe_core::mapping::Applications;
use dubhe_core::migration::{AddressComparator, MigrationStep};
use dubhe_core::observation::Observation;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lookup::{Effective, Lookup};
use crate::rule_source::RuleInForce;
use crate::side::SideKind;
use crate::slot::Slot;
use crate::snapshot::{Held, Snapshot};
use crate::state::{MigrationState, SideState, forced_side};

/// First pause before looking again whether a side that has addresses has a connection.
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// Longest such pause.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long the first side waits for the rule: what a forced step would not make should not be made for the moment that the config
/// centre takes to answer, and the first step has nothing to compare with, a later one has.
const FIRST_RULE: Duration = Duration::from_secs(3);

/// What calls and watchers see.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) consumer: Url,
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) state: watch::Sender<MigrationState>,
}

/// Where the wanted step comes from.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(crate) lookup: Lookup,
    pub(crate) rules: Option<watch::Receiver<Arc<RuleInForce>>>,
    pub(crate) applications: Option<watch::Receiver<Observation<Applications>>>,
    /// Beats everything else.
    pub(crate) fixed: Option<Effective>,
}

impl Wishes {
    pub(crate) fn effective(&mut self) -> Effective {
        if let Some(fixed) = &self.fixed {
            return fixed.clone();
        }
        let rules =
            self.rules.as_mut().map(|rules| Arc::clone(&rules.borrow_and_update())).unwrap_or_default();
        let applications =
            self.applications.as_mut().and_then(|known| known.borrow_and_update().known.clone());
        let nobody = BTreeSet::new();
        self.lookup.effective(&rules.rule, applications.as_deref().unwrap_or(&nobody))
    }

    /// Waits until the rule, and where it has parts for applications the mapping, were seen for the first time.
    async fn known(&mut self) {
        while self.fixed.is_none() && !self.is_known() {
            self.changed().await;
        }
    }

    fn is_known(&self) -> bool {
        let Some(rules) = &self.rules else { return true };
        let rules = rules.borrow();
        let needs_mapping = !rules.rule.applications.is_empty();
        let has_mapping =
            || self.applications.as_ref().is_none_or(|applications| applications.borrow().known.is_some());
        rules.known && (!needs_mapping || has_mapping())
    }

    async fn changed(&mut self) {
        tokio::select! {
            () = changed(&mut self.rules) => {}
            () = changed(&mut self.applications) => {}
        }
    }
}

/// Waits for a change; a source that ended never changes, and what it said last stays.
async fn changed<T>(source: &mut Option<watch::Receiver<T>>) {
    if let Some(receiver) = source
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Changes a reference's sides and steps.
///
/// Each turn takes one event and then [`Switcher::settle`]s: it looks at what is wanted and what is there, changes what can be changed, and
/// publishes the result as one snapshot. Nothing is awaited in between, so a change is there as a whole or not at all, and the last
/// rule wins: a wait for addresses is a state, not a pause.
#[derive(Debug)]
pub(crate) struct Switcher {
    shared: Arc<Shared>,
    wishes: Wishes,
    comparators: Vec<Arc<dyn AddressComparator>>,
    interface: Slot,
    application: Slot,
    wanted: Effective,
    step: Option<MigrationStep>,
    waiting: Option<Waiting>,
    blocked: Option<Arc<str>>,
    look_again: Option<Instant>,
}

/// A switch that waits for addresses.
#[derive(Debug)]
struct Waiting {
    until: Instant,
    /// Whether it was told that the wait was in vain.
    told: bool,
    pause: Duration,
}

/// Whether a side can take over.
enum Readiness {
    Ready,
    NotEnough,
    NotConnected,
}

impl Switcher {
    pub(crate) fn new(
        shared: Arc<Shared>,
        wishes: Wishes,
        wanted: Effective,
        comparators: Vec<Arc<dyn AddressComparator>>,
        interface: Slot,
        application: Slot,
    ) -> Self {
        let (step, waiting, blocked, look_again) = (None, None, None, None);
        Self {
            shared,
            wishes,
            comparators,
            interface,
            application,
            wanted,
            step,
            waiting,
            blocked,
            look_again,
        }
    }

    /// Runs until `closing` says true or ends; then closes the sides.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<bool>) {
        let closed = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => true,
            _ = tokio::time::timeout(FIRST_RULE, self.wishes.known()) => false,
        };
        if closed {
            return self.close().await;
        }
        self.take_wishes();
        self.settle();
        loop {
            let look_again = self.look_again;
            tokio::select! {
                _ = closing.wait_for(|closing| *closing) => break,
                () = self.wishes.changed() => self.take_wishes(),
                () = self.interface.event() => {}
                () = self.application.event() => {}
                () = sleep_until(look_again) => {}
            }
            self.settle();
        }
        self.close().await;
    }

    fn take_wishes(&mut self) {
        let wanted = self.wishes.effective();
        if wanted != self.wanted {
            tracing::info!(step = %wanted.step, origin = %wanted.step_origin, "migration wanted");
            self.wanted = wanted;
            self.waiting = None;
        }
    }

    /// Brings what is there nearer to what is wanted, as far as it goes without waiting.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        self.interface.drop_closed();
        self.application.drop_closed();
        (self.blocked, self.look_again) = (None, None);
        match forced_side(self.wanted.step) {
            None => {
                self.interface.want(now);
                self.application.want(now);
                self.reach();
            }
            Some(kind) => {
                self.slot(kind).want(now);
                if self.step == Some(self.wanted.step) {
                    self.give_up(kind.other(), now);
                } else {
                    self.approach(kind, now);
                }
            }
        }
        self.publish();
    }

    /// Switches to `kind` alone if that can take over, or says why not.
    fn approach(&mut self, kind: SideKind, now: Instant) {
        if self.held(kind.other()).is_none() {
            // Nobody needs it any more.
            self.give_up(kind.other(), now);
        }
        let state = self.slot(kind).state();
        if state != SideState::Present {
            self.waiting = None;
            self.blocked = Some(format!("the {kind} side is not there: {state}").into());
            return;
        }
        let readiness = self.readiness(kind);
        let (wanted, force) = (self.wanted.step, self.wanted.force);
        let until = now + self.wanted.delay;
        let waiting = self.waiting.get_or_insert(Waiting { until, told: false, pause: FIRST_LOOK });
        let over = now >= waiting.until;
        if matches!(readiness, Readiness::Ready) || (over && force) {
            self.reach();
            self.give_up(kind.other(), now);
            return;
        }
        let mut wake = (!over).then_some(waiting.until);
        if matches!(readiness, Readiness::NotConnected) {
            // Nobody tells when a connection opens.
            let look = now + waiting.pause;
            waiting.pause = (waiting.pause * 2).min(LONGEST_LOOK);
            wake = Some(wake.map_or(look, |wake| wake.min(look)));
        }
        let tell = over && !waiting.told;
        waiting.told |= over;
        let why = self.why_not(kind, &readiness, over);
        if tell {
            tracing::warn!(step = %wanted, why, "migration blocked, it goes on when addresses come");
        }
        self.look_again = wake;
        self.blocked = Some(why.into());
    }

    fn readiness(&mut self, kind: SideKind) -> Readiness {
        let (Some(new), Some(old)) = (self.held(kind), self.held(kind.other())) else {
            // There is nothing to lose.
            return Readiness::Ready;
        };
        // Comparing two lists that are only kept tells which one calls use, but not that the other one can go.
        if new.status().kept || !self.suffices(new, old) {
            Readiness::NotEnough
        } else if !new.is_available() && old.is_available() {
            Readiness::NotConnected
        } else {
            Readiness::Ready
        }
    }

    fn suffices(&self, new: &Held, old: &Held) -> bool {
        let (consumer, threshold) = (&self.shared.consumer, self.wanted.threshold);
        let (new_status, old_status) = (new.status(), old.status());
        self.comparators.iter().all(|comparator| match new.kind {
            SideKind::Application => comparator.suffices(consumer, &new_status, &old_status, threshold),
            SideKind::Interface => comparator.suffices_back(consumer, &new_status, &old_status, threshold),
        })
    }

    fn why_not(&self, kind: SideKind, readiness: &Readiness, over: bool) -> String {
        let status = |kind| self.held(kind).map(|held| held.status().to_string()).unwrap_or_default();
        let reason = match readiness {
            Readiness::NotConnected => "no connection to them is open yet",
            _ => "that does not suffice",
        };
        let then = match (over, self.wanted.force) {
            (true, _) => "it goes on when that changes",
            (false, true) => "it is forced when the delay is over",
            (false, false) => "it waits",
        };
        format!(
            "the {kind} side has {}, the {} side {}; {reason} (threshold {}): {then}",
            status(kind),
            kind.other(),
            status(kind.other()),
            self.wanted.threshold,
        )
    }

    fn reach(&mut self) {
        self.waiting = None;
        let wanted = self.wanted.step;
        if self.step != Some(wanted) {
            let from = self.step.map_or("none", MigrationStep::name);
            tracing::info!(from, to = %wanted, "migration step reached");
            self.step = Some(wanted);
        }
    }

    /// Gives the side that is not wanted up; one that works is kept while the wanted one is not there.
    fn give_up(&mut self, unwanted: SideKind, now: Instant) {
        let safe = self.held(unwanted.other()).is_some();
        let slot = self.slot(unwanted);
        if safe || slot.held().is_none() {
            slot.retire(now);
        }
    }

    fn publish(&self) {
        let preferred = self.preferred();
        let snapshot = Snapshot {
            step: self.step,
            preferred,
            proportion: self.wanted.proportion,
            interface: self.interface.held().cloned(),
            application: self.application.held().cloned(),
            closed: false,
        };
        let before = self.shared.snapshot.load();
        if before.preferred != preferred {
            tracing::info!(side = %preferred, "preferred side changed");
        }
        if !before.is_same(&snapshot) {
            self.shared.snapshot.store(Arc::new(snapshot));
        }
        let state = MigrationState {
            step: self.step,
            wanted: self.wanted.clone(),
            preferred,
            interface: self.interface.state(),
            application: self.application.state(),
            blocked: self.blocked.clone(),
            closed: false,
        };
        self.shared.state.send_if_modified(|shown| {
            let is_news = *shown != state;
            if is_news {
                *shown = state;
            }
            is_news
        });
    }

    fn preferred(&self) -> SideKind {
        let (interface, application) = (self.interface.held(), self.application.held());
        match (self.step.unwrap_or(self.wanted.step), interface, application) {
            (_, None, Some(_)) => SideKind::Application,
            (_, Some(_), None) => SideKind::Interface,
            (MigrationStep::ApplicationFirst, Some(interface), Some(application)) => {
                if self.suffices(application, interface) {
                    SideKind::Application
                } else {
                    SideKind::Interface
                }
            }
            (step, ..) => forced_side(step).unwrap_or(SideKind::Interface),
        }
    }

    fn held(&self, kind: SideKind) -> Option<&Arc<Held>> {
        match kind {
            SideKind::Interface => self.interface.held(),
            SideKind::Application => self.application.held(),
        }
    }

    fn slot(&mut self, kind: SideKind) -> &mut Slot {
        match kind {
            SideKind::Interface => &mut self.interface,
            SideKind::Application => &mut self.application,
        }
    }

    /// Refuses new calls, lets the others end, and closes both sides.
    async fn close(mut self) {
        let closed = Snapshot {
            step: self.step,
            preferred: SideKind::Interface,
            proportion: 0,
            interface: None,
            application: None,
            closed: true,
        };
        self.shared.snapshot.store(Arc::new(closed));
        tokio::join!(self.interface.close(), self.application.close());
        self.shared.state.send_modify(|state| {
            (state.interface, state.application) = (SideState::Absent, SideState::Absent);
            (state.blocked, state.closed) = (None, true);
        });
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
