//! Everything that is difficult for profilers at once: allocation, short-lived threads, forks, programs and libraries,
//! signals, deep stacks, small stacks, interrupted sleep.
//!
//! Each part checks itself; `wrong` counts errors.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle, spin_rounds};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A part runs until the end of the time, and returns its rounds and errors.
type Part = (&'static str, fn(Instant) -> (u64, u64));

const PARTS: &[Part] = &[
    ("allocate", allocate),
    ("allocate", allocate),
    ("churn", churn),
    ("forks", forks),
    ("programs", programs),
    ("libraries", libraries),
    ("signals", signals),
    ("deep", deep),
    ("sleep", sleep),
];

/// Runs all parts side by side for `--seconds`.
pub fn run(options: &Options, report: &mut Report) {
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let start = |part: &Part| {
        let (name, body) = *part;
        let thread = Builder::new().name(name.into()).stack_size(4 << 20);
        (name, thread.spawn(move || body(end)).expect("a thread can be started"))
    };
    let handles: Vec<_> = PARTS.iter().map(start).collect();
    let mut wrong_parts = 0;
    let mut rounds_of_all = Vec::new();
    for (name, handle) in handles {
        let (rounds, wrong) = handle.join().unwrap_or((0, 1));
        wrong_parts += wrong + u64::from(rounds == 0);
        rounds_of_all.push(format!("{{\"part\": \"{name}\", \"rounds\": {rounds}, \"wrong\": {wrong}}}"));
    }
    report.list("parts", &rounds_of_all);
    report.number("wrong", wrong_parts);
}

/// Repeats until the end and adds up errors.
fn until(end: Instant, mut round: impl FnMut(u64) -> bool) -> (u64, u64) {
    let (mut rounds, mut wrong) = (0, 0);
    let mut limit = Limit::Until(end);
    while limit.go_on() {
        wrong += u64::from(!round(rounds));
        rounds += 1;
    }
    (rounds, wrong)
}

fn allocate(end: Instant) -> (u64, u64) {
    let mut order = Shuffle::new(3);
    let mut held = vec![vec![0u8; 1]; 64];
    until(end, |round| {
        let place = order.below(64) as usize;
        let size = 1 + order.below(5000) as usize;
        held[place] = vec![round as u8; size];
        held[place][size - 1] == round as u8
    })
}

fn churn(end: Instant) -> (u64, u64) {
    until(end, |round| {
        let small = Builder::new().stack_size(64 << 10);
        let thread = small.spawn(move || spin_rounds(round | 1, 5000));
        thread.is_ok_and(|thread| thread.join().is_ok())
    })
}

fn forks(end: Instant) -> (u64, u64) {
    until(end, |_| {
        // SAFETY: the child of a program with threads may do only what a signal handler may: it computes and ends by
        // _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            spin_rounds(1, 200_000);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(9) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 9
    })
}

fn programs(end: Instant) -> (u64, u64) {
    let me = std::env::current_exe().expect("the own path is known");
    until(end, |_| {
        let child = Command::new(&me).args(["chain", "--work", "5"]).output();
        child.is_ok_and(|child| {
            child.status.success() && child.stdout.starts_with(b"{") && child.stderr.is_empty()
        })
    })
}

fn libraries(end: Instant) -> (u64, u64) {
    until(end, |_| {
        // SAFETY: the library belongs to the C library, has no state that outlives it, and is not used after it is closed.
        unsafe {
            let library = libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_NOW);
            let found = !library.is_null() && !libc::dlsym(library, c"ns_get16".as_ptr()).is_null();
            found && libc::dlclose(library) == 0
        }
    })
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

fn signals(end: Instant) -> (u64, u64) {
    let signal = libc::SIGRTMIN() + 3;
    let handler: extern "C" fn(libc::c_int) = count_signal;
    // SAFETY: the handler only increments an atomic; a real-time signal that this thread sends to itself is handled before
    // the call returns.
    unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    until(end, |_| {
        let before = HANDLED.load(Relaxed);
        // SAFETY: as above.
        let sent = unsafe { libc::raise(signal) } == 0;
        std::thread::yield_now();
        sent && HANDLED.load(Relaxed) == before + 1
    })
}

#[inline(never)]
fn go_down(left: u32, x: u64) -> u64 {
    if left == 0 { spin_rounds(x | 1, 100_000) } else { go_down(left - 1, x ^ 5).rotate_left(3) ^ x }
}

fn deep(end: Instant) -> (u64, u64) {
    let expected = go_down(20_000, 1);
    until(end, |_| go_down(20_000, 1) == expected)
}

fn sleep(end: Instant) -> (u64, u64) {
    until(end, |_| {
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(7));
        begin.elapsed() >= Duration::from_millis(7)
    })
}
