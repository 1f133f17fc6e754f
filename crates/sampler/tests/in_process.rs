//! Samples the own process: the events are true in each run, and the handler uses little stack.
#![allow(unsafe_code, reason = "calls the C library")]

mod calling_thread;

use calling_thread::{own_tid, spin};
use stackglass_sampler::{Config, NotStarted, start};
use stackglass_wire::stream::Reader;
use stackglass_wire::*;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// One sampler in a process: the tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Sums over one run, by thread.
#[derive(Default, Debug)]
struct Sums {
    tid: u32,
    started: u64,
    ended: u64,
    cpu: u64,
    awake: u64,
    asleep: u64,
    hits: u64,
    cut: u64,
    deepest: usize,
    /// Time of stacks that have an address in the watched range.
    in_range: u64,
    last_in_range: bool,
}

fn add(sums: &mut BTreeMap<u32, Sums>, event: Event<'_>, range: &std::ops::Range<u64>) {
    let mut time_of = |thread: ThreadId, time: u64, state: State, inside: Option<bool>| {
        let sum = sums.get_mut(&thread.0).expect("told before");
        match state {
            State::Awake => sum.awake += time,
            State::Asleep | State::Waiting => sum.asleep += time,
            State::Task => panic!("no wall-time profile was asked for"),
        }
        sum.last_in_range = inside.unwrap_or(sum.last_in_range);
        if sum.last_in_range {
            sum.in_range += time;
        }
    };
    match event {
        Event::ThreadStart { thread, tid, at, .. } => {
            let sum = sums.entry(thread.0).or_default();
            (sum.tid, sum.started) = (tid, at);
        }
        Event::ThreadEnd { thread, at, cpu, .. } => {
            let sum = sums.get_mut(&thread.0).unwrap();
            (sum.ended, sum.cpu) = (at, cpu);
        }
        Event::Sample { thread, time, state, cut, hits, frames, .. } => {
            time_of(thread, time, state, Some(frames.iter().any(|f| range.contains(f))));
            let sum = sums.get_mut(&thread.0).unwrap();
            sum.hits += hits as u64;
            sum.cut += (cut != 0) as u64;
            sum.deepest = sum.deepest.max(frames.len());
        }
        Event::Repeat { thread, time, state, .. } => time_of(thread, time, state, None),
        _ => {}
    }
}

/// Samples while `work` runs, with a reader on the same thread afterwards.
fn sample(
    config: Config,
    range: std::ops::Range<u64>,
    work: impl FnOnce(),
) -> (BTreeMap<u32, Sums>, [u64; 4]) {
    let handle = start(config).unwrap();
    work();
    handle.stop();
    let control = handle.control();
    assert_eq!(control.process_state(), ProcessState::Stopped);
    let mut reader = Reader::new(control, handle.ring());
    let mut sums = BTreeMap::new();
    while let Some(event) = reader.read().unwrap() {
        add(&mut sums, event, &range);
    }
    let counter = |which| control.counters.get(which);
    assert_eq!(counter(Counter::StreamFull), 0);
    let figures = [Counter::Ticks, Counter::SignalsRunning, Counter::StacksRunning, Counter::MissedTicks];
    (sums, figures.map(counter))
}

#[test]
fn times_sum_up_again_and_again() {
    let _turn = TURN.lock().unwrap();
    for round in 0..10 {
        let begun = Instant::now();
        let mut inside = Duration::ZERO;
        let (sums, [ticks, signals, stacks, _]) = sample(Config::default(), 0..0, || {
            let begun = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| std::thread::sleep(Duration::from_millis(60)));
                scope.spawn(|| spin(Duration::from_millis(60)));
            });
            inside = begun.elapsed();
        });
        let wall = begun.elapsed().as_nanos() as u64;
        let me = sums.values().find(|s| s.tid == own_tid()).expect("the calling thread");
        let told = me.awake + me.asleep;
        assert!(told <= wall && told >= inside.as_nanos() as u64, "round {round}: {told} of {wall}");
        for sum in sums.values() {
            assert!(sum.ended >= sum.started && sum.ended > 0, "{sum:?}");
            assert_eq!(sum.cpu, sum.awake, "{sum:?}");
            let lived = sum.ended - sum.started;
            assert!((sum.awake + sum.asleep).abs_diff(lived) < 200_000, "{sum:?} lived {lived}");
        }
        // A thread may end, or on a loaded machine still wait for a CPU, before it answers.
        assert!(ticks > 0 && stacks <= signals && signals - stacks <= 4, "{stacks} of {signals}");
    }
}

#[test]
fn one_at_a_time_and_stopped_twice() {
    let _turn = TURN.lock().unwrap();
    let first = start(Config::default()).unwrap();
    assert_eq!(start(Config::default()).err(), Some(NotStarted::Running));
    first.stop();
    first.stop();
    let second = start(Config::default()).unwrap();
    first.stop();
    assert!(!stackglass_sampler::is_running(), "a handle stops whatever runs in its process");
    second.stop();
}

#[test]
fn a_child_that_forks_while_we_sample_lives_on() {
    let _turn = TURN.lock().unwrap();
    let (sums, _) = sample(Config::default(), 0..0, || {
        for _ in 0..20 {
            spin(Duration::from_millis(3));
            // SAFETY: the child works a little without allocating and leaves.
            let status = unsafe {
                let child = libc::fork();
                if child == 0 {
                    spin(Duration::from_millis(3));
                    libc::raise(libc::SIGURG);
                    libc::_exit(!stackglass_sampler::is_running() as i32 * 5);
                }
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                status
            };
            assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 5));
        }
    });
    assert!(sums.values().any(|s| s.hits > 0));
}

#[test]
fn starting_and_stopping_is_quick() {
    let _turn = TURN.lock().unwrap();
    start(Config::default()).unwrap().stop();
    let mut times: Vec<Duration> = (0..31)
        .map(|_| {
            let begun = Instant::now();
            start(Config::default()).unwrap().stop();
            begun.elapsed()
        })
        .collect();
    times.sort();
    // The best of them, so that a loaded machine does not decide.
    assert!(times[0] < Duration::from_millis(3), "{times:?}");
}

/// Starts and stops beside busy threads, again and again; the stacks of one more run.
fn stacks_after(runs: u32) -> u64 {
    static DONE: AtomicBool = AtomicBool::new(false);
    DONE.store(false, Relaxed);
    // Deep, so that the handler often is at work when sampling stops.
    fn deep(n: u32) -> u64 {
        if n > 0 {
            return black_box(deep(n - 1) + 1);
        }
        let mut x = 1u64;
        while !DONE.load(Relaxed) {
            x = black_box(x.wrapping_mul(3));
        }
        x
    }
    let busy: Vec<_> = (0..4).map(|_| std::thread::spawn(|| deep(2000))).collect();
    for _ in 0..runs {
        let handle = start(Config { delay_ns: 200_000, ..Config::default() }).unwrap();
        std::thread::sleep(Duration::from_micros(400));
        handle.stop();
        // On a loaded machine its thread may need longer than `stop` waits.
        while stackglass_sampler::is_running() {
            handle.stop();
        }
    }
    let handle = start(Config::default()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    handle.stop();
    DONE.store(true, Relaxed);
    busy.into_iter().for_each(|thread| drop(thread.join()));
    let counters = &handle.control().counters;
    let (missed, stacks) = (counters.get(Counter::NoMailbox), counters.get(Counter::StacksRunning));
    // While its thread waits for a CPU, all may be in use for a moment. Lost ones would be missing for good.
    assert!(missed * 2 <= stacks, "{missed} stacks without a mailbox, {stacks} with one");
    stacks
}

#[test]
fn many_runs_beside_busy_threads_lose_no_mailbox() {
    let _turn = TURN.lock().unwrap();
    assert!(stacks_after(200) > 5);
}

#[test]
#[ignore = "long: two thousand runs"]
fn two_thousand_runs_beside_busy_threads_lose_no_mailbox() {
    let _turn = TURN.lock().unwrap();
    assert!(stacks_after(2000) > 5);
}

#[test]
fn handlers_that_were_at_work_when_sampling_stopped_keep_no_mailbox() {
    let _turn = TURN.lock().unwrap();
    start(Config::default()).unwrap().stop();
    let guest = stackglass_host::guest::current().unwrap();
    // One handler still writes. The others are done before the next run, which does not wait for their stacks.
    let left: Vec<_> = guest.mailboxes.iter().filter_map(|m| Some((m, m.reserve()?))).collect();
    for (i, (mailbox, generation)) in left.iter().enumerate() {
        // SAFETY: this test plays the handler, once for each.
        assert!(unsafe { mailbox.begin_write(*generation) }.is_some());
        if i > 0 {
            mailbox.finish_write(*generation);
        }
    }
    let (sums, [_, _, stacks, _]) = sample(Config::default(), 0..0, || {
        spin(Duration::from_millis(300));
    });
    assert!(stacks > 5 && sums.values().any(|s| s.hits > 5), "{stacks} {sums:#?}");
    left[0].0.finish_write(left[0].1);
}

#[test]
fn our_memory_is_not_locked_with_the_programs() {
    let _turn = TURN.lock().unwrap();
    const WHO: &str = "SAMPLER_TEST_LOCKS_ITS_MEMORY";
    if std::env::var_os(WHO).is_none() {
        // In a separate process: nothing of ours is mapped there yet.
        let name = "our_memory_is_not_locked_with_the_programs";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", name, "--nocapture"]).env(WHO, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let locked = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    // SAFETY: no pointers.
    if unsafe { libc::mlockall(libc::MCL_FUTURE) } != 0 {
        return; // Not allowed here: then no program can.
    }
    let before = locked();
    let handle = start(Config::default()).unwrap();
    spin(Duration::from_millis(50));
    let grown = locked() - before;
    handle.stop();
    // The sampler's thread has a stack of 256 KiB, made by the C library.
    assert!(grown < 1024, "{grown} KiB were locked");
}

static PAINTED: AtomicBool = AtomicBool::new(false);
static DEPTH: AtomicU64 = AtomicU64::new(0);

extern "C" fn nothing(_: i32) {}

const PAINT: u64 = 0xa5a5_5a5a_c3c3_3c3c;
const AREA: usize = 64 << 10;

/// Paints the stack below itself, lets `meanwhile` happen without using stack, and gives the bytes that were
/// used below the red zone.
#[inline(never)]
fn bytes_used(mut meanwhile: impl FnMut()) -> u64 {
    let sp: u64;
    // SAFETY: reads a register. The area below the red zone belongs to this thread's stack, which is larger
    // (2 MiB), and to nobody else while this function runs without calls.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) sp);
        let top = (sp - 512) as *mut u64;
        for i in 1..AREA / 8 {
            top.sub(i).write_volatile(PAINT);
        }
        meanwhile();
        let mut lowest = 0;
        for i in 1..AREA / 8 {
            if top.sub(i).read_volatile() != PAINT {
                lowest = i;
            }
        }
        lowest as u64 * 8
    }
}

#[test]
fn the_handler_uses_two_kib_of_stack_at_most() {
    let _turn = TURN.lock().unwrap();
    // What the kernel's frame and an empty handler use.
    // SAFETY: a handler that does nothing, for a signal nobody else uses here.
    let empty = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &action, core::ptr::null_mut());
        std::thread::spawn(|| bytes_used(|| signal_self(libc::SIGUSR2))).join().unwrap()
    };
    let config = Config { delay_ns: 200_000, ..Config::default() };
    let (sums, _) = sample(config, 0..0, || {
        let thread = std::thread::spawn(|| {
            let used = bytes_used(|| {
                let cycles = 1_500_000_000u64;
                // SAFETY: only counts; no stack.
                unsafe {
                    core::arch::asm!("2: dec {n}", "jnz 2b", n = inout(reg) cycles => _, options(nomem, nostack));
                }
            });
            DEPTH.store(used, Relaxed);
            PAINTED.store(true, Relaxed);
        });
        thread.join().unwrap();
    });
    let hits = sums.values().map(|s| s.hits).max().unwrap();
    assert!(hits > 100, "signals while the stack was painted: {hits}");
    let ours = DEPTH.load(Relaxed);
    assert!(PAINTED.load(Relaxed) && ours > empty, "{ours} bytes with us, {empty} with an empty handler");
    let own = ours - empty;
    assert!(own <= 2048, "the handler uses {own} bytes below the kernel's frame");
}

/// A signal to this thread, by system calls that use no stack.
#[inline(always)]
fn signal_self(signal: i32) {
    // SAFETY: gettid, getpid and tgkill touch no memory of ours.
    unsafe {
        let call = |nr: i64, a: i64, b: i64, c: i64| {
            let result: i64;
            core::arch::asm!(
                "syscall",
                inlateout("rax") nr => result,
                in("rdi") a, in("rsi") b, in("rdx") c,
                out("rcx") _, out("r11") _,
                options(nostack),
            );
            result
        };
        let pid = call(libc::SYS_getpid, 0, 0, 0);
        let tid = call(libc::SYS_gettid, 0, 0, 0);
        call(libc::SYS_tgkill, pid, tid, signal as i64);
    }
}

/// CPU ns of one block of work.
fn block() -> u64 {
    let cpu = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is live.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let begun = cpu();
    nested(20, 60_000_000);
    cpu() - begun
}

#[inline(never)]
fn nested(depth: u32, rounds: u64) -> u64 {
    if depth > 0 {
        return nested(depth - 1, rounds) + black_box(1);
    }
    let mut x = 1u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    x
}

#[test]
#[ignore = "long: pairs of blocks with an empty handler and ours"]
fn a_sample_costs_little_more_than_an_empty_handler() {
    let _turn = TURN.lock().unwrap();
    block();
    let config = Config { delay_ns: 100_000, ..Config::default() };
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..40 {
        for (kind, costs) in costs.iter_mut().enumerate() {
            let bare = block();
            stackglass_sampler::set_empty_handler(kind == 0);
            let handle = start(config).unwrap();
            // The first samples work rules out; they are not what a sample costs.
            nested(20, 1_000_000);
            let before = handle.control().counters.get(Counter::StacksRunning);
            let with = block();
            let samples = handle.control().counters.get(Counter::StacksRunning) - before;
            handle.stop();
            costs.push((with as f64 - bare as f64) / samples as f64);
        }
    }
    stackglass_sampler::set_empty_handler(false);
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let [empty, ours] = costs.each_mut().map(median);
    eprintln!("a sample costs {ours:.0} ns, with an empty handler {empty:.0} ns: {:.3}", ours / empty);
    assert!(ours <= 1.15 * empty, "{ours} against {empty}");
}
