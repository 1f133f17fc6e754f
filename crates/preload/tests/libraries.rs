//! Libraries that are opened and closed under load: no crash, and right stacks through them.

use crate::launcher::*;

fn open_and_close(rounds: &str) -> Run {
    let program = compile("libraries", &[]);
    let library = compile("plugin", &["-shared", "-fPIC"]);
    let session = Session::new();
    session.page().delay_ns.store(200_000, std::sync::atomic::Ordering::Relaxed);
    let run = session.run(session.command(&program).arg(&library).arg(rounds));
    assert!(run.status.success(), "{} {}", run.status, run.stderr);
    let process = &run.processes[0];
    assert!(!process.broken);
    let threads = process.threads(&Symbols::from_program(&program));
    let opener = threads.values().find(|t| t.time_in("open_and_close") > 0).unwrap();
    // CPU time: a thread that waits for a CPU may do so before the sampler knows the library.
    let is_through = |stack: &str, asleep: bool| !asleep && stack.contains("open_and_close;work_of_cpu");
    let through: u64 = opener
        .stacks
        .iter()
        .filter(|((stack, asleep), _)| is_through(stack, *asleep))
        .map(|(_, time)| time)
        .sum();
    let all = opener.awake;
    assert!(through as f64 > 0.8 * all as f64, "walked through the library: {through} of {all}: {opener:#?}");
    run
}

#[test]
fn opened_and_closed_under_load() {
    let run = open_and_close("200");
    let loads = |events: &[Told]| {
        events.iter().filter(|e| matches!(e, Told::Load { path, .. } if path.contains("plugin"))).count()
    };
    let unloads = run.processes[0].events.iter().filter(|e| matches!(e, Told::Unload { .. })).count();
    assert!(loads(&run.processes[0].events) > 10 && unloads > 10);
}

#[test]
#[ignore = "long: a minute of opening and closing"]
fn opened_and_closed_for_a_minute() {
    open_and_close("12000");
}
