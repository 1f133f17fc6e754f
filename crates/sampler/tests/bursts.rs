//! A thread that works in short bursts: what its function gets is what its own clock says.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass_sampler::{Config, start};
use stackglass_wire::stream::Reader;
use stackglass_wire::*;
use std::time::{Duration, Instant};

// A function whose end is known, too.
std::arch::global_asm!(
    ".pushsection .text.burst_spin, \"ax\", @progbits",
    ".p2align 4",
    ".globl burst_spin, burst_spin_end",
    ".hidden burst_spin, burst_spin_end",
    ".type burst_spin, @function",
    "burst_spin:",
    ".cfi_startproc",
    "2: dec rdi",
    "jnz 2b",
    "ret",
    ".cfi_endproc",
    "burst_spin_end:",
    ".size burst_spin, . - burst_spin",
    ".popsection",
);

unsafe extern "C" {
    fn burst_spin(rounds: u64);
    fn burst_spin_end();
}

fn cpu() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Rounds that take a microsecond.
fn rounds() -> u64 {
    let before = cpu();
    // SAFETY: only counts.
    unsafe { burst_spin(20_000_000) };
    20_000_000_000 / (cpu() - before)
}

/// What a thread ran, and what was recorded of it, ms.
struct Measured {
    /// What the function ran, by the thread's own clock.
    own: f64,
    /// What was recorded of the function.
    recorded: f64,
    /// What the whole thread ran.
    thread: f64,
}

fn run(burst: u64, sleep: u64) -> Measured {
    let rounds = rounds() * burst;
    let handle = start(Config::default()).unwrap();
    let (own, all, tid) = std::thread::spawn(move || {
        let (begun, until) = (cpu(), Instant::now() + Duration::from_secs(3));
        let mut own = 0;
        while Instant::now() < until {
            let before = cpu();
            // SAFETY: only counts.
            unsafe { burst_spin(rounds) };
            own += cpu() - before;
            std::thread::sleep(Duration::from_micros(sleep));
        }
        // SAFETY: no arguments.
        (own, cpu() - begun, unsafe { libc::syscall(libc::SYS_gettid) } as u32)
    })
    .join()
    .unwrap();
    handle.stop();
    let range = burst_spin as *const () as u64..burst_spin_end as *const () as u64;
    let mut reader = Reader::new(handle.control(), handle.ring());
    let (mut thread, mut inside, mut recorded) = (None, false, 0);
    while let Some(event) = reader.read().unwrap() {
        match event {
            Event::ThreadStart { thread: number, tid: its, .. } if its == tid => thread = Some(number),
            Event::Sample { thread: number, time, state, frames, .. } if Some(number) == thread => {
                inside = frames.iter().any(|frame| range.contains(frame));
                if inside {
                    assert_ne!(state, State::Asleep, "it never sleeps there");
                    recorded += time;
                }
            }
            Event::Repeat { thread: number, time, state: State::Awake, .. }
                if Some(number) == thread && inside =>
            {
                recorded += time;
            }
            _ => {}
        }
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    Measured { own: ms(own), recorded: ms(recorded), thread: ms(all) }
}

#[test]
fn bursts_get_the_time_that_they_ran() {
    let Measured { own, recorded, thread } = run(3000, 3000);
    assert!(
        recorded > own * 0.8 && recorded < thread * 1.05,
        "{recorded:.1} ms recorded, {own:.1} of {thread:.1} ran"
    );
}
