//! Layer 6, directory: the providers of one service as one immutable snapshot.
//!
//! ```text
//!  registry view ─┐
//!  router rules  ─┼─► one writer task ──► Snapshot (Arc, swapped whole) ──► every call: list
//!  availability  ─┘   keyed diff, merge,     providers + routes
//!                     override, refer, bind
//! ```
//!
//! - [`RegistryDirectory`] follows a registry's view of a service: unchanged addresses keep their invokers and connections, changed
//!   ones get new invokers on the same connections, removed ones drain.
//! - [`StaticDirectory`] holds a fixed list (`url=` references).
//! - Both set providers aside that turned out to be unavailable, and take them back when they are available again.
//!
//! Not here: reading the registry (see `registry`), routing (see `router`), connecting (see `protocol-dubbo`).

pub use dubhe_core::directory::{Directory, DirectoryStatus};

mod connectivity;
mod former;
mod listed;
mod overrides;
mod providers;
mod registry_directory;
mod snapshot;
mod static_directory;
mod writer;

pub use registry_directory::{RegistryDirectory, RegistryDirectoryParts};
pub use static_directory::StaticDirectory;
