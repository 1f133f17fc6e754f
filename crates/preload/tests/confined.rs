//! A thread whose filter forbids system calls is not made to call any, and its time is still recorded.

use crate::launcher::*;
use stackglass_wire::{Counter, cut};

#[test]
fn a_confined_thread_lives_on_without_a_stack() {
    let program = compile("confined", &[]);
    let symbols = Symbols::from_program(&program);
    for _ in 0..3 {
        let session = Session::new();
        let run = session.run(session.command(&program).arg("filter"));
        lives_on(&run);
        let process = &run.processes[0];
        let threads = process.threads(&symbols);
        assert!(threads[&1].hits > 0, "{threads:#?}");
        assert!(process.counter(Counter::NotSignalled) > 0, "{:?}", process.counters);
        let other = &threads[&2];
        let without_stack = other.cuts.get(&cut::NOT_TAKEN).copied().unwrap_or(0);
        assert!(without_stack * 10 > other.cpu * 8, "{other:#?}");
    }
}

/// Not even the return from a signal handler is allowed there: sampling of the process ends before, with what it has.
#[test]
fn sampling_ends_before_a_thread_enters_strict_mode() {
    let program = compile("confined", &[]);
    let symbols = Symbols::from_program(&program);
    for _ in 0..3 {
        // On a busy machine, all may be over before the sampler has a CPU.
        let threads = (0..5).map(|_| {
            let session = Session::new();
            let run = session.run(session.command(&program).arg("strict"));
            lives_on(&run);
            run.processes[0].threads(&symbols)
        });
        let threads = threads.into_iter().find(|threads| threads.contains_key(&1));
        let threads = threads.expect("what was counted before is kept in one of five runs");
        assert!(threads[&1].cpu > 0, "{threads:#?}");
        let confined = threads.get(&2).map_or(0, |other| other.hits);
        assert_eq!(confined, 0, "{threads:#?}");
    }
}

#[track_caller]
fn lives_on(run: &Run) {
    assert_eq!((run.status.code(), run.stdout.trim()), (Some(0), "1"), "{} {}", run.status, run.stderr);
}
