//! Fibonacci numbers by plain recursion: one busy thread, stacks of changing depth, no system calls.

use crate::options::Options;
use crate::report::Report;
use std::hint::black_box;

/// About a third of a second.
const NUMBER: u32 = 40;

#[inline(never)]
fn fib(n: u32) -> u64 {
    if n < 2 { u64::from(n) } else { fib(n - 1) + fib(n - 2) }
}

/// Computes the number `--work` times.
pub fn run(options: &Options, report: &mut Report) {
    let times = options.work.unwrap_or(1);
    for _ in 0..times {
        black_box(fib(black_box(NUMBER)));
    }
    report.number("work", times);
}
