//! Programs that block signals: none of ours reaches them, and their other threads go on.

use crate::program::Program;
use stackglass_attach::frozen::{FreezeError, FrozenProcess, Options, OtherPages, WorkingSet};
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
    if !are_allowed() {
        return;
    }
    let (program, _) = Program::start("signals", &[]);
    let set = WorkingSet::default();
    let (start, mut looks) = (Instant::now(), 0);
    while looks < 30 {
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
