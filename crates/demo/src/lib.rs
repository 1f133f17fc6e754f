//! The program that `stackglass demo` profiles: a few threads, each with one typical behaviour.
//!
//! * `compute` always runs: two thirds of the time in `smooth`, one third in `score`.
//! * `sleeper` sleeps.
//! * `holder` works with a lock held; `waiter` waits for the lock.
//! * `recursion` walks a tree by recursion.
//! * `allocator` allocates and frees many small objects.
//! * `callback` sorts through the C library's `qsort`, which calls back into Rust.
//!
//! It is a separate crate because the call of `qsort` is unsafe.
#![allow(unsafe_code, reason = "calls qsort of the C library")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Runs all threads for `time`.
pub fn run(time: Duration) {
    let until = Instant::now() + time;
    let ledger = Mutex::new(0u64);
    let threads: [(&str, &(dyn Fn() + Sync)); 7] = [
        ("compute", &|| compute(until)),
        ("sleeper", &|| sleep(until)),
        ("holder", &|| hold_lock(until, &ledger)),
        ("waiter", &|| want_lock(until, &ledger)),
        ("recursion", &|| recurse(until)),
        ("allocator", &|| allocate(until)),
        ("callback", &|| sort_through_c(until)),
    ];
    thread::scope(|scope| {
        for (name, work) in threads {
            // If a thread cannot be started, the others suffice.
            let _ = thread::Builder::new().name(name.into()).spawn_scoped(scope, work);
        }
    });
}

fn compute(until: Instant) {
    let mut field: Vec<f64> = (0..4096).map(f64::from).collect();
    while Instant::now() < until {
        smooth(&mut field);
        smooth(&mut field);
        black_box(score(&field));
    }
}

/// One pass of a moving average.
#[inline(never)]
fn smooth(field: &mut [f64]) {
    for _ in 0..20 {
        for i in 1..field.len() - 1 {
            field[i] = (field[i - 1] + field[i] + field[i + 1]) / 3.0;
        }
    }
}

/// As much work as one call of `smooth`.
#[inline(never)]
fn score(field: &[f64]) -> f64 {
    (0..20).map(|_| field.iter().fold(0.0, |sum, x| (sum + x) / 1.000_1)).sum()
}

/// Works in short bursts and mostly sleeps.
#[inline(never)]
fn sleep(until: Instant) {
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
}

#[inline(never)]
fn hold_lock(until: Instant, ledger: &Mutex<u64>) {
    while Instant::now() < until {
        if let Ok(mut sum) = ledger.lock() {
            *sum = sum.wrapping_add(book_entries(200));
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[inline(never)]
fn want_lock(until: Instant, ledger: &Mutex<u64>) {
    while Instant::now() < until {
        if let Ok(mut sum) = ledger.lock() {
            *sum = sum.wrapping_add(book_entries(20));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[inline(never)]
fn book_entries(n: u64) -> u64 {
    (0..n * 100).fold(7, |sum, entry| black_box(sum.wrapping_mul(31).wrapping_add(entry)))
}

fn recurse(until: Instant) {
    while Instant::now() < until {
        black_box(count_leaves(18));
        thread::sleep(Duration::from_millis(10));
    }
}

/// Leaves of a full binary tree.
#[inline(never)]
fn count_leaves(depth: u32) -> u64 {
    if depth == 0 { black_box(1) } else { count_leaves(depth - 1) + count_leaves(depth - 1) }
}

fn allocate(until: Instant) {
    while Instant::now() < until {
        black_box(index_words(3000));
        thread::sleep(Duration::from_millis(10));
    }
}

/// Many small allocations: strings in vectors in a map.
#[inline(never)]
fn index_words(n: usize) -> usize {
    let mut index: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for i in 0..n {
        index.entry(i * 7919 % 97).or_default().push(format!("word {i}"));
    }
    index.values().map(Vec::len).max().unwrap_or(0)
}

fn sort_through_c(until: Instant) {
    let mut round = 0u64;
    while Instant::now() < until {
        round += 1;
        let mut numbers: Vec<u64> = (0..20_000).map(|i| (i * 2_654_435_761 + round) % 1_000_003).collect();
        qsort(&mut numbers);
        assert!(numbers.is_sorted(), "the C library sorts");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sorts with the C library, which calls `compare`.
fn qsort(numbers: &mut [u64]) {
    let (first, count) = (numbers.as_mut_ptr().cast(), numbers.len());
    // SAFETY: `first` points to `count` initialised elements of the given size, borrowed mutably for
    // the call; `compare` reads two of them, is a total order and does not unwind.
    unsafe { libc::qsort(first, count, size_of::<u64>(), Some(compare)) }
}

#[inline(never)]
extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
    // SAFETY: qsort passes pointers to two elements of the array, which are `u64`.
    let (a, b) = unsafe { (*a.cast::<u64>(), *b.cast::<u64>()) };
    a.cmp(&b) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_ends_in_time() {
        let start = Instant::now();
        run(Duration::from_millis(100));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn sorting_through_c_sorts() {
        let mut numbers = vec![3, 1, 2, u64::MAX, 0];
        qsort(&mut numbers);
        assert_eq!(numbers, [0, 1, 2, 3, u64::MAX]);
    }
}
