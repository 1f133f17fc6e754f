//! Programs with known stacks and times are recorded correctly.

use crate::launcher::*;
use stackglass_wire::*;

#[test]
fn known_stacks_and_times() {
    check("query");
}

#[test]
fn known_stacks_and_times_where_mappings_cannot_be_asked_for() {
    check("text");
}

fn check(maps: &str) {
    let program = compile("known", &[]);
    let session = Session::new();
    let run = session.run(session.command(&program).arg("1.5").env("STACKGLASS_TEST_MAPS", maps));
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(run.stderr, "");
    assert_eq!(run.processes.len(), 1);
    let process = &run.processes[0];
    assert_eq!(process.state, ProcessState::Stopped);
    let threads = process.threads(&Symbols::from_program(&program));
    assert_eq!(threads.len(), 5, "main and four threads, no sampler: {threads:#?}");
    let named = |name: &str| threads.values().find(|t| t.name == name).expect(name);
    let share = |t: &Thread, part: &str| t.time_in(part) as f64 / (t.awake + t.asleep) as f64;

    let deep = "deep;".repeat(201);
    let is_known = |t: &Thread, part: &str| assert!(share(t, part) > 0.99, "{part}: {t:#?}");
    is_known(named("busy"), "busy_thread;busy_outer;busy_inner;leaf");
    is_known(named("deep"), &format!("deep_thread;{deep}busy_outer"));
    is_known(named("sleeper"), "sleep_thread;sleep_outer;sleep_inner");
    is_known(named("waiter"), "lock_thread;wait_for_lock");
    is_known(&threads[&1], "main");
    for name in ["sleeper", "waiter"] {
        let thread = named(name);
        assert!(thread.asleep > 100 * thread.awake, "{thread:#?}");
    }

    // All CPU time by the kernel belongs to stacks, except the sampler's.
    let used = run.stdout.trim().parse::<f64>().unwrap() * 1000.0;
    let given: u64 = threads.values().map(|t| t.cpu).sum();
    let sampler = process.sampler_cpu as f64;
    assert!(close(given as f64 + sampler, used, 0.02), "{given} + {sampler} of {used}");
    for thread in threads.values() {
        assert_eq!(thread.awake, thread.cpu);
        let lived = thread.ended.unwrap() - thread.started;
        assert!(
            close((thread.awake + thread.asleep) as f64, lived as f64, 0.01),
            "{thread:#?} lived {lived}"
        );
    }
    assert_eq!(process.counter(Counter::SignalsAsleep), 0);
}

#[test]
fn an_entry_without_unwind_rules_is_the_outermost_frame() {
    let program = compile("entry", &["-nostartfiles"]);
    let session = Session::new();
    let run = session.run(&mut session.command(&program));
    assert!(run.status.success(), "{} {}", run.status, run.stderr);
    let main = &run.processes[0].threads(&Symbols::from_program(&program))[&1];
    assert!(main.time_in("_start;main;work") > 200_000_000, "{main:#?}");
    assert!(main.time_in("_start;main;sleeps") > 200_000_000, "{main:#?}");
    let all = main.awake + main.asleep;
    assert!(main.cuts.get(&0).is_some_and(|complete| complete * 100 > all * 95), "{main:#?}");
}
