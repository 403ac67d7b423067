//! What the benchmarks measure, set up once for the criterion benches (`cargo bench -p dubhe-benches`) and for the report
//! (`cargo xtask bench-report`).
//!
//! | module | question |
//! | --- | --- |
//! | [`pick`] | what does list + route + select cost, without I/O? |
//! | [`change`] | what does an address change cost, from notify to routable? |
//! | [`codec`] | how fast is Hessian2? |
//! | [`call`] | how many calls go over one connection, beside a bare tokio echo? |
//! | [`memory`] | how many bytes does a provider address take? |
//! | [`scale`] | what do 1,000 interfaces of 500 instances cost, by both models of discovery? |
//! | [`push`] | how long from a node in ZooKeeper to a routable provider? |

pub mod call;
pub mod change;
pub mod codec;
pub mod doubles;
pub mod measure;
pub mod memory;
pub mod pick;
pub mod push;
pub mod scale;
