//! What does a pick cost: list + route + select, without I/O?
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use dubhe_benches::pick::{Floor, Picks, RULE};

fn pick(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let _entered = runtime.enter();
    let mut group = criterion.benchmark_group("pick");
    for n in [10, 100, 1_000, 10_000] {
        let floor = Floor::new(n);
        group.bench_function(BenchmarkId::new("floor", n), |bencher| bencher.iter(|| floor.pick()));
        for (case, rule) in [("none", None), ("condition", Some(RULE))] {
            for balancer in ["random", "roundrobin"] {
                let picks = Picks::new(n, balancer, rule).expect("the set-up is right");
                let id = BenchmarkId::new(format!("{case}/{balancer}"), n);
                group.bench_function(id, |bencher| bencher.iter(|| picks.pick()));
            }
        }
    }
    group.finish();
}

criterion_group!(benches, pick);
criterion_main!(benches);
