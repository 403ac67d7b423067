//! Layer 8, proxy: between the calls that users write and [`Invocation`]s.
//!
//! - Consumer: [`ServiceClient`] turns a method and typed arguments into an invocation and the response into the return
//!   type or an error; the clients that `#[dubhe::service]` generates are thin layers over it. [`GenericService`] calls
//!   methods by name with dynamic values.
//! - Provider: [`Skeleton`] gives an invocation to a [`Service`], and answers `$echo` and generic calls itself.
//! - [`context`]: what a service method can know of the call that it serves, and say back.
//!
//! Not here: where a call goes (see `cluster`), and how it is written (see `protocol-dubbo`, `serialize-hessian2`).

pub use dubhe_core::invocation::Invocation;
pub use dubhe_core::service::{MethodDefinition, Service, ServiceDefinition};

mod client;
pub mod context;
mod generalise;
mod generic;
mod interface;
mod options;
mod skeleton;

pub use client::ServiceClient;
pub use generic::GenericService;
pub use interface::{
    ArgumentTuple, ServiceInterface, TypedClient, arguments, convert_arguments, method, method_definition,
    no_such_index, read_arguments,
};
pub use options::{CallOptions, ResponseAttachments};
pub use skeleton::Skeleton;
