//! Layer 4, protocol: the dubbo protocol, both roles.
//!
//! [`DubboProtocol`] makes invokers of `dubbo://` URLs and serves exported services. It knows what is in the body of a
//! request and of a response, and nothing of sockets ([`Exchanger`](dubhe_core::exchange::Exchanger)) or of the bytes of
//! a value ([`Serialization`](dubhe_core::serialize::Serialization)).
//!
//! As a consumer: invokers of one address with the same connection settings share connections; the last one that goes
//! closes them. What every request to a provider repeats is encoded once, when the invoker is made. Errors tell how far
//! the call came and keep the status byte.
//!
//! As a provider: one server per address, shared by its services. A request is decoded into the types of the method it
//! names; `$echo` and `$invoke` are decoded to dynamic values and given to the service's invoker like any other call.
//!
//! Deliberately different from the reference: error texts name only the service asked for, not all that are exported;
//! a wrong token is compared in constant time and not repeated; keys hold no port; answers to foreign requests never
//! come with attachments that old peers cannot read.
//!
//! Not supported: requests of dubbox 2.8.x, which hold an argument count (the answer says so); callback arguments
//! (a provider's call back is answered with status 70).

mod protocol;

mod failure;
mod invoker;
mod pool;
mod settings;

mod constants;
mod memo;

mod reply;
mod request;
mod serializations;
mod version;

mod bound;
mod handler;
mod served;

#[cfg(test)]
mod tests;

pub use protocol::DubboProtocol;
