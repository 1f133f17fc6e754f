//! What the thread that runs a test does, and its id.

use std::hint::black_box;
use std::time::{Duration, Instant};

pub fn own_tid() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Computes for this time.
#[inline(never)]
pub fn spin(time: Duration) -> u64 {
    let until = Instant::now() + time;
    let mut x = 1u64;
    while Instant::now() < until {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
    x
}
