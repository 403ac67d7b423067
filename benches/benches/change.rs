//! What does an address change cost, from notify to routable?
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use dubhe_benches::change::Changes;

fn change(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let mut group = criterion.benchmark_group("change");
    group.sample_size(10);
    for n in [1_000, 10_000] {
        let mut changes = runtime.block_on(Changes::new(n)).expect("the set-up is right");
        runtime.block_on(changes.first());
        group.bench_function(BenchmarkId::new("one", n), |bencher| {
            bencher.iter(|| runtime.block_on(changes.one_changed()));
        });
    }
    group.finish();
}

criterion_group!(benches, change);
criterion_main!(benches);
