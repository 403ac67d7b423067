//! Tests that hold the other end: the test reads the bytes that a client or server sends, and decides the answer.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod client;
mod end;
mod events;
mod frames;
mod pipe;
mod server;
