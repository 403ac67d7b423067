//! How fast is Hessian2?
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dubhe_benches::codec::{Codec, order};

fn codec(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    let mut text = Codec::new("x".repeat(1024)).expect("the codec is right");
    group.throughput(Throughput::Bytes(text.bytes() as u64));
    group.bench_function("encode/string-1k", |bencher| bencher.iter(|| text.encode()));
    group.bench_function("decode/string-1k", |bencher| bencher.iter(|| text.decode()));
    let mut order = Codec::new(order(20)).expect("the codec is right");
    group.throughput(Throughput::Bytes(order.bytes() as u64));
    group.bench_function("encode/order-20", |bencher| bencher.iter(|| order.encode()));
    group.bench_function("decode/order-20", |bencher| bencher.iter(|| order.decode()));
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
