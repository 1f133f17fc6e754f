//! Programs that block signals: none of ours reaches them, and their other threads go on.

use crate::program::Program;
use stackglass_attach::frozen::{FreezeError, FrozenProcess, Options, OtherPages, WorkingSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn are_allowed() -> bool {
    stackglass_perf::user_stop::are_allowed().is_ok()
}

/// The number of signals that the program got, and the longest time in which a thread did not run, ms.
fn end(mut program: Program) -> (u64, u64) {
    let line = program.finish();
    let mut words = line.split(' ').filter_map(|word| word.parse().ok());
    (words.next().expect("a number of signals"), words.next().expect("a time"))
}

/// A call such as sigtimedwait(2) takes signals that wait, and no tracer sees them.
#[test]
fn threads_that_wait_for_signals_get_none_of_ours() {
    look_at_threads_that_wait_for_signals(30);
}

/// Here threads often wait for a CPU in such a call, which shows their signals as not blocked.
#[test]
fn threads_that_wait_for_signals_get_none_of_ours_on_a_busy_machine() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // A panic must end them as well.
        let result = std::panic::catch_unwind(|| look_at_threads_that_wait_for_signals(40));
        over.store(true, Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn look_at_threads_that_wait_for_signals(least: u32) {
    if !are_allowed() {
        return;
    }
    let (program, _) = Program::start("signals", &[]);
    let set = WorkingSet::default();
    let (start, mut looks) = (Instant::now(), 0);
    while looks < least {
        assert!(start.elapsed() < Duration::from_secs(100), "{looks} looks");
        for others in [OtherPages::Missing, OtherPages::Live, OtherPages::Stopped] {
            looks +=
                u32::from(FrozenProcess::of_pages(program.pid(), &set, others, &Options::default()).is_ok());
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    for _ in 0..3 {
        drop(FrozenProcess::copy(program.pid(), &Options::default()));
    }
    let (signals, _) = end(program);
    assert_eq!(signals, 0, "beside {looks} looks");
}

#[test]
fn others_do_not_wait_for_a_thread_that_blocks_signals() {
    if !are_allowed() {
        return;
    }
    let (program, _) = Program::start("signals", &["blocks"]);
    let set = WorkingSet::default();
    let copy = FrozenProcess::copy(program.pid(), &Options::default()).err();
    let look = FrozenProcess::of_pages(program.pid(), &set, OtherPages::Missing, &Options::default()).err();
    for error in [copy, look] {
        assert!(matches!(error, Some(FreezeError::BlocksSignals { .. })), "{error:?}");
    }
    let (signals, gap) = end(program);
    assert_eq!(signals, 0);
    // They waited for three seconds once.
    assert!(gap < 1000, "{gap} ms");
}
