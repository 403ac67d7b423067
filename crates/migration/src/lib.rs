//! Layer 6, migration: from interface-level to application-level discovery without a moment of no provider.
//!
//! A [`MigrationInvoker`] stands for one reference. Behind it are up to two [`Side`]s, the interface-level and the application-level
//! providers of the same service, each made by a [`SideFactory`] when the step asks for it:
//!
//! | step | sides | calls go to |
//! | --- | --- | --- |
//! | `FORCE_INTERFACE` | interface | interface |
//! | `APPLICATION_FIRST` | both | application when the [`AddressComparator`] says that it suffices, else interface; `proportion` percent at most to application |
//! | `FORCE_APPLICATION` | application | application |
//!
//! Whatever the step, a call for which the preferred side has nothing usable goes to the other one as long as that is there. A switch
//! to `FORCE_x` waits until the new side can take over; then the snapshot that calls read is swapped, and after it the old side ends its
//! calls and is closed. Each change is one swap of one snapshot.
//!
//! The step comes from a [`MigrationRule`], which [`RuleSource`] follows for an application, and is looked up for each reference by
//! [`Lookup`]. One task per reference makes all changes; it ends with [`MigrationInvoker::close`] or when the invoker is dropped.
//!
//! Not here: how a side finds its providers (see `directory`, `discovery`), where rules are kept (see `core::config_center`).

pub use dubhe_core::migration::{AddressComparator, MigrationStep};

mod rule;
pub use rule::{MigrationRule, RuleError, SubRule};

mod lookup;
pub use lookup::{Effective, Lookup, Origin, Properties, property};

mod rule_source;
pub use rule_source::{DEFAULT_LOCAL_DELAY, LocalRule, RuleInForce, RuleOrigin, RuleSource};

mod comparator;
pub use comparator::{ThresholdComparator, usable};

mod side;
pub use side::{DirectorySide, Side, SideFactory, SideKind};

mod invoker;
pub use invoker::{Dice, MigrationInvoker, MigrationParts};

mod state;
pub use state::{MigrationState, SideState};

mod explain;
pub use explain::{MigrationExplanation, SideReport};

mod report;
pub use report::{REPORT_GRACE, report_changes, tell};

mod slot;
mod snapshot;
mod switcher;
