//! Small stacks, alternate stacks, fibres and very deep recursion: programs run unharmed, with right stacks.

use crate::launcher::*;
use stackglass_unwind::walk::Cut;
use stackglass_wire::*;

fn run(kind: &str) -> (Run, Process, Symbols) {
    let program = compile("stacks", &[]);
    let session = Session::new();
    let mut run = session.run(session.command(&program).arg(kind));
    assert!(run.status.success(), "{kind}: {} {}", run.status, run.stderr);
    assert_eq!(run.stderr, "", "{kind}");
    let process = run.processes.pop().unwrap();
    assert!(!process.broken);
    (run, process, Symbols::from_program(&program))
}

#[test]
fn stacks_of_64_kib() {
    let (_, process, symbols) = run("small");
    let threads = process.threads(&symbols);
    let small: Vec<_> =
        threads.values().filter(|t| t.time_in("small;small_work;work") > 300_000_000).collect();
    assert_eq!(small.len(), 4, "{threads:#?}");
    // Relative, since with other load they mostly wait.
    assert!(small.iter().all(|t| t.hits > 0 && t.hits * 10_000_000 > t.awake), "{threads:#?}");
}

#[test]
fn an_alternate_stack_of_8_kib_with_a_handler_on_it() {
    let (run, process, symbols) = run("alternate");
    assert_eq!(run.stdout.trim(), "200");
    let main = &process.threads(&symbols)[&1];
    assert!(main.time_in("main;work") > 120_000_000, "{main:#?}");
}

#[test]
fn time_in_long_handlers_on_small_alternate_stacks_goes_to_no_other_function() {
    let (run, process, symbols) = run("long-handlers");
    assert_eq!(run.stdout.trim(), "150");
    let main = &process.threads(&symbols)[&1];
    // Hardly any time between 150 handlers of 4 ms, during which the sampling signal is blocked.
    let held_back = main.stacks.get(&(String::new(), false)).copied().unwrap_or(0);
    assert!(held_back * 10 > main.awake * 8, "{:?}\n{main:#?}", process.counters);
    assert_eq!(main.awake, main.cpu);
    // Once the kernel has said that it is blocked, next to none.
    let shown = shown_after_the_first_blocked(&process);
    assert!(shown * 20 < held_back, "{shown} {:?}\n{main:#?}", process.counters);
}

/// CPU time of the main thread that has stacks, from its first sample on that says that the signal was blocked.
fn shown_after_the_first_blocked(process: &Process) -> u64 {
    let of_main = process.events.iter().filter_map(|event| match *event {
        Told::Sample { thread: 1, time, state, cut, .. } => Some((time, state, Some(cut))),
        Told::Repeat { thread: 1, time, state, .. } => Some((time, state, None)),
        _ => None,
    });
    let mut last = 0;
    let samples = of_main.map(|(time, state, cut)| {
        last = cut.unwrap_or(last);
        (time, state, last)
    });
    let later = samples.skip_while(|(.., cut)| *cut != cut::BLOCKED);
    later
        .filter(|(_, state, cut)| *state == State::Awake && *cut != cut::BLOCKED)
        .map(|(time, ..)| time)
        .sum()
}

#[test]
fn an_alternate_stack_too_small_for_any_signal() {
    let (_, process, symbols) = run("tiny-alternate");
    let main = &process.threads(&symbols)[&1];
    // Fewer hits than ticks: with other load, the thread often waits.
    assert!(main.hits * 10_000_000 > main.awake, "{main:#?}");
}

#[test]
fn fibres_are_walked_to_their_own_root() {
    let (_, process, symbols) = run("fibres");
    let main = &process.threads(&symbols)[&1];
    let all = (main.awake + main.asleep) as f64;
    assert!(main.time_in("fibre;fibre_work;work") as f64 > 0.95 * all, "{main:#?}");
    assert!(main.time_in("main;fibre") == 0, "a fibre is not called by main");
}

#[test]
fn recursion_a_hundred_thousand_deep_is_cut_and_counted() {
    let (_, process, symbols) = run("recursion");
    let threads = process.threads(&symbols);
    let deep = threads.values().find(|t| t.cuts.contains_key(&(Cut::Depth as u8))).expect("a cut thread");
    assert!(deep.time_in("recurse;work") > 400_000_000);
    let frames = process.events.iter().filter_map(|e| match e {
        Told::Sample { frames, .. } => Some(frames.len()),
        _ => None,
    });
    assert_eq!(frames.max(), Some(MAX_FRAMES));
    assert!(process.counter(Counter::Cut) > 5);
}
