//! Measures what the allocator of the crate costs for each pair of an allocation and a free: off, counting in scopes, and
//! recording. `cargo run --release -p stackglass-heap --example allocator_cost`
#![allow(unsafe_code, reason = "calls allocators")]

use stackglass_heap::own_recording::{self, Keeping};
use stackglass_heap::{Alloc, ProcessScope, Sampling, ThreadScope};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: Alloc = Alloc::system();

const PAIRS: u64 = 4_000_000;
const LIVE: usize = 64;

/// Nanoseconds for a pair, the fastest of some rounds. Blocks live for a while, so that caches of the allocator are used as in
/// programs.
fn measure(allocator: &impl GlobalAlloc) -> f64 {
    let layout = |n: u64| Layout::from_size_align(16 + (n * 8 % 256) as usize, 8).unwrap();
    let mut best = f64::MAX;
    for _ in 0..9 {
        let mut live = [(std::ptr::null_mut::<u8>(), layout(0)); LIVE];
        let begin = Instant::now();
        for n in 0..PAIRS / 8 {
            let place = &mut live[n as usize % LIVE];
            // SAFETY: each block is freed once, with its layout.
            unsafe {
                if !place.0.is_null() {
                    allocator.dealloc(place.0, place.1);
                }
                *place = (black_box(allocator.alloc(layout(n))), layout(n));
            }
        }
        best = best.min(begin.elapsed().as_nanos() as f64 / (PAIRS / 8) as f64);
        for place in live {
            // SAFETY: as above.
            unsafe { allocator.dealloc(place.0, place.1) };
        }
    }
    best
}

fn main() {
    let plain = measure(&System);
    let off = measure(&ALLOCATOR);
    println!("plain {plain:.1} ns, off {off:.1} ns: {:.3}", off / plain);
    let scope = ThreadScope::begin();
    println!("thread scope  {:+.1} ns", measure(&ALLOCATOR) - plain);
    drop(scope);
    let scope = ProcessScope::begin();
    println!("process scope {:+.1} ns", measure(&ALLOCATOR) - plain);
    drop(scope);
    for (name, sampling, record_bytes) in [
        ("rate 0.01", Sampling::Rate(0.01), 1 << 30),
        ("rate 0.1", Sampling::Rate(0.1), 1 << 30),
        ("every, counts only", Sampling::Every, 0),
        ("every, with records", Sampling::Every, 1 << 30),
    ] {
        own_recording::begin(Keeping { sampling, record_bytes }).expect("a recording");
        let on = measure(&ALLOCATOR);
        own_recording::end();
        println!("{name:20} {:+.1} ns", on - plain);
        if sampling == Sampling::Every {
            println!("stopped, frees followed {:+.1} ns", measure(&ALLOCATOR) - plain);
        }
        own_recording::forget();
    }
}
