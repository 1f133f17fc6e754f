//! A benchmark of allocated bytes. In a package of its own, this is a file in `benches/` with `harness = false`.
//!
//! `cargo run --release -p stackglass --features criterion --example criterion`

use criterion::{Criterion, criterion_group, criterion_main};
use stackglass::allocs::AllocatedBytes;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

fn strings(criterion: &mut Criterion<AllocatedBytes>) {
    let words: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    criterion.bench_function("concat", |bencher| bencher.iter(|| black_box(&words).concat()));
    criterion.bench_function("push", |bencher| {
        bencher.iter(|| black_box(&words).iter().fold(String::new(), |text, word| text + word));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(AllocatedBytes);
    targets = strings
}
criterion_main!(benches);
