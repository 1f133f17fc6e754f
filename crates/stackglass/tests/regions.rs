//! The crate in a program whose profile is known: regions nest, add up, and never change the program.
//!
//! One process, one profile: the tests take turns.

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static TURN: Mutex<()> = Mutex::new(());

fn fresh() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    stackglass::init(stackglass::DEFAULT_N, stackglass::DEFAULT_DELAY).unwrap();
    turn
}

/// CPU time of this thread, as the kernel counts it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Computes until this much CPU time is used, however little of it the machine gives us.
#[inline(never)]
fn burn(time: Duration) -> u64 {
    let (began, mut x) = (processor_time(), 1u64);
    while processor_time() - began < time {
        for _ in 0..20_000 {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
    x
}

#[inline(never)]
fn outer(time: Duration) -> u64 {
    black_box(burn(time)).rotate_left(1) // not a tail call
}

/// Milliseconds awake in stacks that contain this function.
fn awake_under(function: &str) -> f64 {
    let recording = stackglass::recording();
    let awake = recording.samples.iter().filter(|s| s.state as u8 == 1);
    awake
        .filter(|s| {
            recording
                .stacks
                .walk(s.stack)
                .any(|at| recording.symbols.frames_of(at).any(|f| f.func.ends_with(function)))
        })
        .map(|s| s.time.millis())
        .sum()
}

#[test]
fn time_lies_where_it_was_spent() {
    let _turn = fresh();
    stackglass::profile!(outer(Duration::from_millis(400)));
    // Outside of the region nothing is taken.
    outer(Duration::from_millis(200));
    let (in_outer, in_burn) = (awake_under("::outer"), awake_under("::burn"));
    assert!((380.0..430.0).contains(&in_burn), "{in_burn} ms in burn");
    assert!((in_outer - in_burn).abs() < 8.0, "burn was called by outer: {in_outer} and {in_burn} ms");
}

#[test]
fn regions_add_up_until_cleared() {
    let _turn = fresh();
    stackglass::profile(|| burn(Duration::from_millis(120)));
    let once = awake_under("::burn");
    stackglass::profile(|| burn(Duration::from_millis(120)));
    let twice = awake_under("::burn");
    assert!((110.0..140.0).contains(&once) && (220.0..280.0).contains(&twice), "{once} ms, then {twice} ms");
    assert_eq!(stackglass::recording().processes.len(), 1, "one process, however many regions");
    stackglass::clear();
    assert_eq!(awake_under("::burn"), 0.0);
}

#[test]
fn guards_nest_and_the_last_one_stops() {
    let _turn = fresh();
    assert!(!stackglass::is_running());
    let first = stackglass::Profiler::start().unwrap();
    let others: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(|| stackglass::profile!(burn(Duration::from_millis(30)))))
        .collect();
    others.into_iter().for_each(|other| assert_ne!(other.join().unwrap(), 0));
    assert!(stackglass::is_running(), "the first guard is still there");
    drop(first);
    assert!(!stackglass::is_running());
}

#[test]
fn a_panic_ends_the_region() {
    let _turn = fresh();
    let result = std::panic::catch_unwind(|| {
        stackglass::profile!({
            assert_eq!(burn(Duration::from_millis(5)), 0, "as asked");
        })
    });
    assert!(result.is_err() && !stackglass::is_running());
}

#[test]
fn settings_read_back_and_refuse_nonsense() {
    let _turn = fresh();
    let set = stackglass::init(5_000_000, Duration::from_micros(500)).unwrap();
    assert_eq!((set.n, set.delay), (5_000_000, Duration::from_micros(500)));
    assert_eq!(stackglass::init(None, None), Ok(set));
    let refused = stackglass::init(None, Duration::from_micros(99)).unwrap_err();
    assert!(refused.to_string().contains("10 000 samples a second"), "{refused}");
    assert!(stackglass::init(0, None).is_err());
    let running = stackglass::Profiler::start().unwrap();
    assert_eq!(stackglass::init(1_000_000, None), Err(stackglass::InitError::Running));
    running.stop();
}

#[test]
fn a_full_buffer_stops_the_sampling_only() {
    let _turn = fresh();
    stackglass::init(3_000, None).unwrap();
    let value = stackglass::profile!({
        let mut sum = 0u64;
        let began = Instant::now();
        while !stackglass::is_buffer_full() && began.elapsed() < Duration::from_secs(20) {
            // Ever new stacks: recursion to a changing depth.
            sum = sum.wrapping_add(deep(sum % 64));
        }
        sum.wrapping_add(burn(Duration::from_millis(5)))
    });
    black_box(value);
    assert!(stackglass::is_buffer_full());
    let report = stackglass::report(100);
    assert!(report.contains("full") && report.contains("init"), "the report names the remedy:\n{report}");
    assert!(matches!(stackglass::Profiler::start(), Err(stackglass::StartError::Full)));
    stackglass::clear();
    assert!(!stackglass::is_buffer_full());
    stackglass::Profiler::start().unwrap().stop();
}

#[inline(never)]
fn deep(depth: u64) -> u64 {
    if depth == 0 { burn(Duration::from_micros(300)) } else { black_box(deep(depth - 1)) + 1 }
}

#[test]
fn the_profiler_can_be_profiled() {
    let _turn = fresh();
    let report = stackglass::profile!({
        burn(Duration::from_millis(50));
        let mut last = String::new();
        for _ in 0..3 {
            last = stackglass::report(80);
        }
        last
    });
    assert!(report.contains("burn"), "{report}");
    assert!(awake_under("::report") > 0.0, "the report itself took time");
}

#[test]
fn the_buffer_is_julias() {
    let _turn = fresh();
    stackglass::profile!(burn(Duration::from_millis(100)));
    let (data, dictionary) = stackglass::retrieve();
    assert!(data.has_meta());
    assert!(!stackglass::fetch(false).has_meta());
    let block = data.blocks().next().unwrap();
    assert!(block.addresses.iter().all(|a| dictionary.get(*a).is_some()));
}

#[test]
fn start_and_stop_are_quick() {
    let _turn = fresh();
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let began = Instant::now();
            stackglass::Profiler::start().unwrap().stop();
            began.elapsed()
        })
        .collect();
    times.sort();
    // 3 ms is the aim on a quiet machine, measured by `cargo xtask bench`; this catches a disaster.
    assert!(times[10] < Duration::from_millis(60), "{:?}", times[10]);
}

#[test]
fn a_forked_child_goes_on_without_us_and_may_profile_itself() {
    let _turn = fresh();
    let exe = std::env::current_exe().unwrap();
    assert!(exe.exists());
    let profiler = stackglass::Profiler::start().unwrap();
    burn(Duration::from_millis(20));
    // The safe way to fork here: a child process by the standard library, under a running profile.
    let status = std::process::Command::new("true").status().unwrap();
    assert!(status.success());
    profiler.stop();
}
