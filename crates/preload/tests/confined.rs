//! A thread whose filter forbids system calls is not made to call any, and its time is still recorded.

mod launcher;
use launcher::*;
use stackglass_wire::{Counter, cut};

#[test]
fn a_confined_thread_lives_on_without_a_stack() {
    let program = compile("confined", &[]);
    let symbols = Symbols::of(&program);
    for kind in ["filter"] {
        for _ in 0..3 {
            let session = Session::new();
            let run = session.run(session.command(&program).arg(kind));
            assert_eq!(
                (run.status.code(), run.stdout.trim()),
                (Some(0), "1"),
                "{kind}: {} {}",
                run.status,
                run.stderr
            );
            let process = &run.processes[0];
            let threads = process.threads(&symbols);
            assert!(threads[&1].hits > 0, "{kind}: {threads:#?}");
            assert!(process.counter(Counter::NotSignalled) > 0, "{kind}: {:?}", process.counters);
            let other = &threads[&2];
            let without_stack = other.cuts.get(&cut::NOT_TAKEN).copied().unwrap_or(0);
            assert!(without_stack * 10 > other.cpu * 8, "{kind}: {other:#?}");
        }
    }
}
