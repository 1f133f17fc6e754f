//! Stacks of running threads come by timers, where the kernel allows it: calls come back whole, and have their time.
#![allow(unsafe_code, reason = "calls the C library")]

mod calling_thread;

use calling_thread::{own_tid, spin};
use stackglass_sampler::{Config, Forbidden, forbid_timers, start};
use stackglass_wire::stream::Reader;
use stackglass_wire::{Event, ImageFlags, State, ThreadId};
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// One sampler in a process: the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

const DELAY: u64 = 100_000;

/// The time of the calling thread, as the recording has it, ns.
#[derive(Default, Debug)]
struct Seen {
    has_timers: bool,
    awake: u64,
    /// The part with a stack at the end of a system call.
    in_calls: u64,
    /// The part without a stack.
    unsampled: u64,
    /// Stacks taken while it ran.
    stacks: u32,
    asleep: u64,
}

/// Whether the instruction before an address of this program, or of its C library, is `syscall`.
fn follows_syscall(pc: u64) -> bool {
    // SAFETY: a place of code that has run; its library stays loaded. No code is the first of its mapping.
    pc > 4096 && unsafe { *((pc - 2) as *const [u8; 2]) } == [0x0f, 0x05]
}

/// With all timers, and with those that nobody is refused.
const KINDS: [Forbidden; 2] = [Forbidden::None, Forbidden::Frequent];

fn sampled(forbidden: Forbidden, delay_ns: u64, work: impl FnOnce()) -> Seen {
    forbid_timers(forbidden);
    let handle = start(Config { delay_ns, ..Config::default() }).unwrap();
    work();
    handle.stop();
    let control = handle.control();
    let mut seen =
        Seen { has_timers: control.image.load(Relaxed) & ImageFlags::TIMERS != 0, ..Seen::default() };
    let mut reader = Reader::new(control, handle.ring());
    let (mut me, mut last) = (None, BTreeMap::new());
    while let Some(event) = reader.read().unwrap() {
        let (thread, time, state): (ThreadId, u64, State) = match event {
            Event::ThreadStart { thread, tid, .. } => {
                me = me.or((tid == own_tid()).then_some(thread));
                continue;
            }
            Event::Sample { thread, time, state, frames, hits, .. } => {
                last.insert(thread.0, frames.first().map(|pc| follows_syscall(*pc)));
                seen.stacks += if me == Some(thread) && state == State::Awake { hits } else { 0 };
                (thread, time, state)
            }
            Event::Repeat { thread, time, state, .. } => (thread, time, state),
            _ => continue,
        };
        if me != Some(thread) {
            continue;
        }
        match state {
            State::Awake => seen.awake += time,
            _ => seen.asleep += time,
        }
        match last.get(&thread.0).filter(|_| state == State::Awake) {
            Some(Some(true)) => seen.in_calls += time,
            Some(None) => seen.unsampled += time,
            _ => {}
        }
    }
    seen
}

/// Whether timers must work here: no filter is in place.
fn must_work() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    !status.lines().any(|line| line.starts_with("Seccomp:") && !line.ends_with('0'))
}

/// Reads random bytes for `time`; how many reads there were, and how many came back short.
fn read_random(time: Duration) -> (u32, u32) {
    let mut random = File::open("/dev/urandom").unwrap();
    let mut bytes = vec![0u8; 64 << 10];
    let (mut reads, mut short) = (0, 0);
    let until = Instant::now() + time;
    while Instant::now() < until {
        reads += 1;
        short += u32::from(random.read(&mut bytes).unwrap() < bytes.len());
    }
    (reads, short)
}

#[test]
fn calls_come_back_whole() {
    let _turn = TURN.lock().unwrap();
    for kind in KINDS {
        let mut counts = (0, 0);
        let seen = sampled(kind, DELAY, || counts = read_random(Duration::from_millis(500)));
        assert_eq!(seen.has_timers, must_work());
        if seen.has_timers {
            assert!(counts.0 > 50 && counts.1 == 0, "{kind:?}: {counts:?}");
        }
    }
}

#[test]
fn without_timers_they_come_back_short() {
    let _turn = TURN.lock().unwrap();
    let mut counts = (0, 0);
    let seen = sampled(Forbidden::All, DELAY, || counts = read_random(Duration::from_millis(500)));
    assert!(!seen.has_timers && counts.1 > 0, "{counts:?}: the test above could not fail");
}

/// CPU time of the calling thread.
fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn time_in_long_calls_is_theirs() {
    let _turn = TURN.lock().unwrap();
    for kind in KINDS {
        let (mut in_calls, mut in_code) = (Duration::ZERO, Duration::ZERO);
        let seen = sampled(kind, 1_000_000, || {
            // On a busy machine it takes longer.
            while in_calls + in_code < Duration::from_millis(1600) {
                let begin = cpu();
                read_random(Duration::from_millis(15));
                let between = cpu();
                spin(Duration::from_millis(15));
                in_calls += between - begin;
                in_code += cpu() - between;
            }
        });
        let all = (in_calls + in_code).as_nanos() as f64;
        assert!(
            (seen.awake as f64 / all - 1.0).abs() < 0.1,
            "{kind:?}: {seen:?} of {in_calls:?}, {in_code:?}"
        );
        if seen.has_timers {
            let (seen_share, share) =
                (seen.in_calls as f64 / seen.awake as f64, in_calls.as_nanos() as f64 / all);
            assert!((seen_share - share).abs() < 0.1, "{kind:?}: {seen_share}, truly {share}: {seen:?}");
        }
    }
}

/// Calls of a microsecond, so that most of them end before the next tick.
#[test]
fn time_in_short_calls_is_theirs() {
    let _turn = TURN.lock().unwrap();
    let mut random = File::open("/dev/urandom").unwrap();
    let mut bytes = [0u8; 256];
    let turn = |calls: u32, rounds: u64, random: &mut File, bytes: &mut [u8]| {
        (0..calls).for_each(|_| {
            random.read_exact(bytes).unwrap();
        });
        // In registers: a loop over memory takes up to three times as long as the same loop elsewhere.
        let mut x = black_box(1u64);
        for _ in 0..rounds {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        black_box(x);
    };
    // How long the two halves of a turn take.
    let clock = |calls, rounds, random: &mut File, bytes: &mut [u8]| {
        let begin = cpu();
        (0..20_000).for_each(|_| turn(calls, rounds, random, bytes));
        (cpu() - begin).as_nanos() as f64
    };
    for kind in KINDS {
        let (mut calls, mut both) = (0.0, 0.0);
        let seen = sampled(kind, 1_000_000, || {
            while both < 1600e6 {
                let all = clock(1, 300, &mut random, &mut bytes);
                let own = clock(0, 300, &mut random, &mut bytes);
                calls += all - own;
                both += all + own;
            }
        });
        if seen.has_timers {
            let (seen_share, share) = (seen.in_calls as f64 / seen.awake as f64, calls / both);
            assert!((seen_share - share).abs() < 0.1, "{kind:?}: {seen_share}, truly {share}: {seen:?}");
        }
    }
}

#[test]
fn own_code_has_its_stacks() {
    let _turn = TURN.lock().unwrap();
    for (kind, stacks) in KINDS.into_iter().zip([400, 50]) {
        let seen = sampled(kind, 1_000_000, || {
            let begin = cpu();
            while cpu() - begin < Duration::from_millis(600) {
                spin(Duration::from_millis(5));
            }
        });
        assert!(
            seen.awake > 590_000_000 && seen.in_calls <= seen.awake / 50 && seen.unsampled <= 5_000_000,
            "{kind:?}: {seen:?}"
        );
        // One each delay, and those of the kernel's ticks, of which there are a hundred each second at least.
        assert!(!seen.has_timers || seen.stacks > stacks, "{kind:?}: {seen:?}");
    }
}

/// A timer of a thread that sleeps waits with it: the sleep belongs to the place where the thread sleeps, and ends nothing early.
#[test]
fn sleeps_are_no_time_in_calls() {
    let _turn = TURN.lock().unwrap();
    for kind in KINDS {
        let begun = Instant::now();
        let seen = sampled(kind, DELAY, || {
            for _ in 0..20 {
                spin(Duration::from_micros(300));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let wall = begun.elapsed().as_nanos() as u64;
        assert!(
            seen.asleep >= 400_000_000 - 20_000_000 && seen.asleep + seen.awake <= wall,
            "{kind:?}: {seen:?} of {wall}"
        );
        assert!(seen.in_calls <= 40_000_000, "{kind:?}: {seen:?}");
    }
}

/// The program's descriptors are its own: the timers lie in another table.
#[test]
fn no_descriptor_is_taken() {
    let _turn = TURN.lock().unwrap();
    let descriptors = || {
        let entries = std::fs::read_dir("/proc/self/task").unwrap();
        drop(entries);
        let mut own: Vec<_> =
            std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|e| e.file_name()).collect();
        own.sort();
        own
    };
    let before = descriptors();
    sampled(Forbidden::None, DELAY, || {
        spin(Duration::from_millis(50));
        let next = File::open("/dev/null").unwrap();
        assert!(next.as_raw_fd() as usize <= before.len(), "{}", next.as_raw_fd());
        drop(next);
        assert_eq!(descriptors(), before);
    });
}
