//! A thread that works in short bursts: what its function gets is what its own clock says.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass_sampler::{Config, start};
use stackglass_wire::stream::Reader;
use stackglass_wire::*;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One sampler in a process: the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

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

/// ms that the function took by its thread's own clock, ms that were told for it, its stacks, and ms that the whole thread ran.
fn run(burst: u64, sleep: u64, events: bool) -> (f64, f64, u64, f64) {
    let rounds = rounds() * burst;
    let handle = start(Config { events, ..Config::default() }).unwrap();
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
    let (mut thread, mut inside, mut told, mut stacks) = (None, false, 0, 0);
    while let Some(event) = reader.read().unwrap() {
        match event {
            Event::ThreadStart { thread: number, tid: its, .. } if its == tid => thread = Some(number),
            Event::Sample { thread: number, time, state, hits, frames, .. } if Some(number) == thread => {
                inside = frames.iter().any(|frame| range.contains(frame));
                if inside {
                    assert_ne!(state, State::Asleep, "it never sleeps there");
                    (told, stacks) = (told + time, stacks + u64::from(hits));
                }
            }
            Event::Repeat { thread: number, time, state: State::Awake, .. }
                if Some(number) == thread && inside =>
            {
                told += time;
            }
            _ => {}
        }
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    (ms(own), ms(told), stacks, ms(all))
}

#[test]
fn short_bursts_get_what_they_ran() {
    let _turn = TURN.lock().unwrap();
    let probe = start(Config::default()).unwrap();
    probe.stop();
    for (burst, sleep) in [(60, 300), (15, 100), (400, 1000), (3000, 3000)] {
        let (own, told, stacks, all) = run(burst, sleep, true);
        eprintln!(
            "{burst} us, then {sleep} us asleep: {own:.0} ms of {all:.0}, told {told:.0}, {stacks} stacks"
        );
        // On a quiet machine within 5 %; where others take the processor the kernel's timer misses some.
        let sigma = own.sqrt();
        assert!(
            told > own * 0.65 && told < own * 1.1 + 3.0 * sigma,
            "{burst}/{sleep}: {told:.1} ms told, {own:.1} ran"
        );
        assert!(stacks as f64 > own * 0.5, "{burst}/{sleep}: {stacks} stacks for {own:.1} ms");
    }
}

#[test]
fn without_events_all_time_is_told_as_well() {
    let _turn = TURN.lock().unwrap();
    let (own, told, _, all) = run(3000, 3000, false);
    assert!(told > own * 0.8 && told < all * 1.05, "{told:.1} ms told, {own:.1} of {all:.1} ran");
}
