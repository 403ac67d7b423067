//! The protocol between a loopback exchanger and a small serialization of the tests' own, so that every message can be
//! seen, made and broken. Known answers of the real hessian2 are tested where both layers may be named, in `dubhe`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod consumer;
mod echo_service;
mod loopback;
mod provider;
mod sharing;
mod tagged;
