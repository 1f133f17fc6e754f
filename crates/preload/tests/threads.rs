//! Thousands of threads, threads that block all signals, programs with handlers.

use crate::launcher::*;
use stackglass_wire::*;

fn run(kind: &str) -> (Run, Symbols) {
    run_every(kind, 1_000_000)
}

fn run_every(kind: &str, delay_ns: u64) -> (Run, Symbols) {
    let program = compile("threads", &[]);
    let session = Session::new();
    session.page().delay_ns.store(delay_ns, std::sync::atomic::Ordering::Relaxed);
    let run = session.run(session.command(&program).arg(kind));
    assert!(run.status.success(), "{kind}: {} {}", run.status, run.stderr);
    assert_eq!(run.stderr, "", "{kind}");
    assert_eq!(run.stdout.trim(), "0", "{kind}: nothing went wrong inside");
    assert_eq!(run.processes.len(), 1);
    (run, Symbols::from_program(&program))
}

#[test]
fn starts_and_ends_of_ten_thousand_threads_are_recorded() {
    let (run, symbols) = run("many");
    let threads = run.processes[0].threads(&symbols);
    let mut met = std::collections::HashMap::new();
    let twice: Vec<_> =
        threads.values().filter_map(|thread| Some((met.insert(thread.tid, thread)?, thread))).collect();
    assert_eq!(threads.len(), 10_001, "told twice: {twice:#?}");
    assert!(threads.keys().copied().eq(1..=10_001), "numbered without gaps");
    for thread in threads.values() {
        let ended = thread.ended.unwrap_or_else(|| panic!("never ended: {thread:?}"));
        assert!(ended >= thread.started);
        assert_eq!(thread.awake, thread.cpu);
    }
}

#[test]
fn a_thread_that_blocks_signals_is_reported_and_its_time_kept() {
    let (run, symbols) = run("blocked");
    let process = &run.processes[0];
    let threads = process.threads(&symbols);
    let blocked = threads.values().find(|t| t.flags & 1 != 0).expect("a thread marked as blocking");
    let lived = (blocked.ended.unwrap() - blocked.started) as f64;
    assert!(close((blocked.awake + blocked.asleep) as f64, lived, 0.01), "{blocked:#?}");
    assert!(blocked.cuts[&cut::BLOCKED] as f64 > 0.5 * lived, "{blocked:#?}");
    assert!(process.counter(Counter::Blocked) > 0);
    assert_eq!(threads.values().filter(|t| t.flags & 1 != 0).count(), 1);
    assert!(threads[&1].time_in("work") > 200_000_000, "the others are sampled as ever");
}

#[test]
fn workers_that_block_all_signals_are_sampled_all_the_same() {
    let (run, symbols) = run("workers");
    let threads = run.processes[0].threads(&symbols);
    let worker =
        threads.values().find(|t| t.time_in("worker;worker_work;work") > 500_000_000).expect("its stacks");
    assert_eq!(worker.flags, 0);
    assert!(worker.hits * 10_000_000 > worker.awake, "{worker:#?}");
}

#[test]
fn a_thread_that_waits_for_all_signals_meets_none_of_ours() {
    let (run, symbols) = run("sigwait");
    let threads = run.processes[0].threads(&symbols);
    assert!(threads.values().any(|t| t.time_in("waiter;work") > 30_000_000), "{threads:#?}");
}

#[test]
fn a_program_keeps_its_own_handler_for_our_signal() {
    let (run, symbols) = run("handler");
    let process = &run.processes[0];
    // All but those before the start of the sampler.
    assert!(process.counter(Counter::ForeignSignal) >= 50);
    let main = &process.threads(&symbols)[&1];
    let all = main.awake + main.asleep;
    assert!(main.time_in("work") * 10 > all * 8 && main.hits * 10_000_000 > main.awake, "{main:#?}");
    assert_eq!(process.image & ImageFlags::SIGNAL_LOST, 0);
}

#[test]
fn a_program_that_sends_our_signal_to_its_threads_loses_none() {
    let (run, symbols) = run_every("urgent", 100_000);
    let process = &run.processes[0];
    let main = &process.threads(&symbols)[&1];
    assert!(main.hits > 10 && main.time_in("work") > 0, "{main:#?}");
    assert_eq!(process.image & ImageFlags::SIGNAL_LOST, 0);
}
