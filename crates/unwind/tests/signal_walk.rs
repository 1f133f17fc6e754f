//! Walks from a signal handler at random moments of a recursion of known depth.
//!
//! One thread recurses down and up, another signals it. At the bottom, which the thread marks, the number of recursive
//! frames must be exact in all leaf functions: arithmetic, `memcpy` and `strlen` of the C library, `clock_gettime` in the
//! vdso. Elsewhere, the walk must reach the outermost frame through the recursion only.
#![allow(unsafe_code, reason = "calls the C library")]

#[path = "support/signals.rs"]
mod signals;

use signals::on_signal;
use stackglass_unwind::{End, OwnStack, Registers, Scratch, Unwinder};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

static UNWINDER: Unwinder = Unwinder::new();
const ROOM: usize = 4096;

/// Written by the handler and read by the test; `STATE` tells which of them may use it.
struct Mailbox {
    scratch: UnsafeCell<Scratch>,
    frames: UnsafeCell<[u64; ROOM]>,
    len: AtomicUsize,
    end: AtomicU32,
    at_bottom: AtomicBool,
}

// SAFETY: only the handler uses the cells while STATE is OUT, only the test while it is BACK.
unsafe impl Sync for Mailbox {}

static MAILBOX: Mailbox = Mailbox {
    scratch: UnsafeCell::new(Scratch::new()),
    frames: UnsafeCell::new([0; ROOM]),
    len: AtomicUsize::new(0),
    end: AtomicU32::new(0),
    at_bottom: AtomicBool::new(false),
};
const BACK: u32 = 0;
const OUT: u32 = 1;
static STATE: AtomicU32 = AtomicU32::new(BACK);
static AT_BOTTOM: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context; STATE is OUT, so only this handler uses the mailbox.
    unsafe {
        let registers = Registers::of_signal(&*context.cast());
        let mut stack = OwnStack::at(registers.sp());
        let frames = &mut *MAILBOX.frames.get();
        let walk = UNWINDER.walk(&registers, &mut stack, &mut *MAILBOX.scratch.get(), frames);
        MAILBOX.len.store(walk.len, Ordering::Relaxed);
        MAILBOX.end.store(u32::from(walk.end.code()), Ordering::Relaxed);
    }
    MAILBOX.at_bottom.store(AT_BOTTOM.load(Ordering::Relaxed), Ordering::Relaxed);
    STATE.store(BACK, Ordering::Release);
}

#[inline(never)]
fn leaf(seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..200 {
        x = x.wrapping_mul(6_364_136_223_846_793_005) ^ x >> 29;
    }
    x
}

/// Computes in leaf functions of several kinds.
#[inline(never)]
fn bottom(seed: u64) -> u64 {
    AT_BOTTOM.store(true, Ordering::Relaxed);
    let mut sum = seed;
    for i in 0..20 {
        sum = sum.wrapping_add(leaf(black_box(sum)));
        let from = [i as u8 | 1; 512];
        let mut to = [0u8; 512];
        // SAFETY: both blocks have 512 bytes; the second call writes one timespec.
        unsafe {
            libc::memcpy(to.as_mut_ptr().cast(), black_box(from.as_ptr()).cast(), 512);
            let mut now: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
            sum = sum.wrapping_add(now.tv_nsec as u64);
        }
        sum = sum.wrapping_add(u64::from(black_box(to)[7]));
    }
    AT_BOTTOM.store(false, Ordering::Relaxed);
    sum
}

#[inline(never)]
fn climb(depth: usize, seed: u64) -> u64 {
    let below = if depth == 0 { bottom(seed) } else { climb(black_box(depth - 1), seed) };
    black_box(below).wrapping_add(1)
}

struct Seen {
    walks: usize,
    at_bottom: usize,
    in_vdso: usize,
    in_libc: usize,
}

/// Samples a thread that recurses to `depth` repeatedly.
fn sample(depth: usize, walks: usize) -> Seen {
    UNWINDER.refresh().unwrap();
    on_signal(libc::SIGURG, libc::SA_RESTART, handler);
    let stop = AtomicBool::new(false);
    let thread_id = AtomicU32::new(0);
    let mut seen = Seen { walks: 0, at_bottom: 0, in_vdso: 0, in_libc: 0 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: no arguments.
            thread_id.store(unsafe { libc::gettid() } as u32, Ordering::SeqCst);
            let mut seed = 1;
            while !stop.load(Ordering::Relaxed) {
                seed = climb(depth, seed);
            }
            black_box(seed);
        });
        let thread = loop {
            match thread_id.load(Ordering::SeqCst) {
                0 => std::thread::yield_now(),
                id => break id,
            }
        };
        let path_of = |address: u64| {
            let modules = UNWINDER.modules().unwrap();
            modules
                .find(address)
                .map(|m| String::from_utf8_lossy(modules.path(m)).into_owned())
                .unwrap_or_default()
        };
        let mut random = 88_172_645_463_325_252u64;
        let mut recursion = 0;
        while seen.walks < walks {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_nanos(random % 200_000));
            STATE.store(OUT, Ordering::SeqCst);
            // SAFETY: a signal to a thread of this process that is alive until `stop`.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) };
            while STATE.load(Ordering::Acquire) == OUT {
                std::thread::yield_now();
            }
            // SAFETY: the handler has returned the mailbox.
            let frames = unsafe { &(&*MAILBOX.frames.get())[..MAILBOX.len.load(Ordering::Relaxed)] };
            assert_eq!(
                MAILBOX.end.load(Ordering::Relaxed) as u8,
                End::Complete.code(),
                "walk {} from {} {:x?}",
                seen.walks,
                path_of(frames[0]),
                &frames[..frames.len().min(8)]
            );
            // The recursive call's return address: found once at the bottom, where it repeats `depth` times.
            let run = frames.chunk_by(|a, b| a == b).max_by_key(|run| run.len()).unwrap();
            if MAILBOX.at_bottom.load(Ordering::Relaxed) {
                seen.at_bottom += 1;
                assert_eq!(run.len(), depth, "walk {}: {frames:x?}", seen.walks);
                assert!(recursion == 0 || recursion == run[0]);
                recursion = run[0];
            } else if recursion != 0 {
                assert!(frames.iter().filter(|f| **f == recursion).count() <= depth);
            }
            let path = path_of(frames[0]);
            seen.in_vdso += usize::from(path.contains("vdso"));
            seen.in_libc += usize::from(path.contains("/libc.so"));
            seen.walks += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!(
        "depth {depth}: {} walks, {} at the bottom, {} in the vdso, {} in the C library: all right",
        seen.walks, seen.at_bottom, seen.in_vdso, seen.in_libc
    );
    seen
}

#[test]
fn random_moments_of_a_known_recursion() {
    for depth in [20, 200, 2000] {
        let seen = sample(depth, 700);
        assert!(seen.at_bottom > 50, "only {} walks at the bottom", seen.at_bottom);
        assert!(seen.in_vdso > 0 && seen.in_libc > 0);
    }
}

#[test]
#[ignore = "long: 20 000 walks at each depth"]
fn many_random_moments_of_a_known_recursion() {
    for depth in [20, 200, 2000] {
        let seen = sample(depth, 20_000);
        assert!(seen.at_bottom > 1000 && seen.in_vdso > 10 && seen.in_libc > 10);
    }
}
