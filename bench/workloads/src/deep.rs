//! Very deep recursion on a large stack, with little work at each level.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, spin_rounds};

#[inline(never)]
fn deep_call(left: u32, x: u64) -> u64 {
    if left == 0 {
        return spin_rounds(x | 1, 200_000);
    }
    let a = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(left & 31);
    deep_call(left - 1, a).rotate_left(5) ^ a
}

/// Repeats a recursion of `--depth` calls (100 000).
pub fn run(options: &Options, report: &mut Report) {
    let depth = options.depth.unwrap_or(100_000);
    let mut limit = Limit::from_options(options);
    let body = move || {
        let mut work = 0;
        while limit.go_on() {
            std::hint::black_box(deep_call(depth, 42));
            work += 1;
        }
        work
    };
    let bytes = 256 * depth as usize + (1 << 20);
    let thread = std::thread::Builder::new().name("deep".into()).stack_size(bytes);
    let handle = thread.spawn(body).expect("a thread with a large stack can be started");
    report.number("depth", depth);
    report.number("work", handle.join().expect("the thread ends well"));
}
