//! What does a lone call cost, beside a bare tokio echo? Rates with many callers: `cargo xtask bench-report`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, criterion_group, criterion_main};
use dubhe::java::JavaBytes;
use dubhe_benches::call::{Floor, PAYLOAD, Pair};

fn call(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let mut group = criterion.benchmark_group("call");
    let floor = runtime.block_on(Floor::start()).expect("loopback can be listened on");
    group.bench_function("floor/1", |bencher| {
        bencher.iter(|| runtime.block_on(floor.call(vec![7; PAYLOAD])).expect("the floor answers"));
    });
    let pair = runtime.block_on(Pair::start()).expect("loopback can be listened on");
    let payload = JavaBytes(vec![7; PAYLOAD]);
    group.bench_function("dubhe/1", |bencher| {
        bencher.iter(|| runtime.block_on(pair.call(&payload)).expect("the provider answers"));
    });
    group.finish();
    runtime.block_on(pair.stop());
}

criterion_group!(benches, call);
criterion_main!(benches);
