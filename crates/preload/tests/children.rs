//! Children of every kind run on unharmed, and are profiled if possible.
#![allow(unsafe_code, reason = "calls the C library")]

use crate::launcher::*;
use stackglass_wire::*;

/// Process id and exit status of the child, from its parent's output.
fn child(run: &Run) -> (u32, i32) {
    let mut words = run.stdout.split_whitespace().map(|w| w.parse::<i64>().unwrap());
    (words.next().unwrap() as u32, words.next().unwrap() as i32)
}

fn run(kind: &str) -> (Run, Symbols) {
    let program = compile("children", &[]);
    let session = Session::new();
    let run = session.run(session.command(&program).arg(kind));
    assert_eq!(run.status.code(), Some(if kind == "exec" { 5 } else { 0 }), "{kind}: {}", run.stderr);
    assert_eq!(run.stderr, "", "{kind}");
    assert!(run.processes.iter().all(|p| !p.broken));
    (run, Symbols::from_program(&program))
}

/// Time of a process image in stacks that contain a function.
fn time_in(process: &Process, symbols: &Symbols, part: &str) -> u64 {
    process.threads(symbols).values().map(|t| t.time_in(part)).sum()
}

/// The part works for 200 ms. `kind` is what the program did.
#[track_caller]
fn assert_most_of_200_ms(process: &Process, symbols: &Symbols, part: &str, kind: &str) {
    let time = time_in(process, symbols, part);
    assert!(
        (150_000_000..400_000_000).contains(&time),
        "{kind}: {time} ns in {part}: {:#?}, {:?}",
        process.threads(symbols),
        process.counters
    );
}

#[test]
fn a_forked_child_is_followed() {
    let (run, symbols) = run("fork");
    let (pid, status) = child(&run);
    assert_eq!(status, 3);
    assert_eq!(run.processes.len(), 2);
    let (parent, child) = (&run.processes[0], &run.processes[1]);
    assert_eq!((child.pid, child.ppid), (pid, parent.pid));
    assert_eq!(parent.image & ImageFlags::FORKED, 0);
    assert_ne!(child.image & ImageFlags::FORKED, 0);
    assert_most_of_200_ms(parent, &symbols, "parent_work", "fork");
    assert_most_of_200_ms(child, &symbols, "child_work", "fork");
    assert_eq!(time_in(parent, &symbols, "child_work"), 0);
    assert_eq!(time_in(child, &symbols, "parent_work"), 0);
}

#[test]
fn exec_in_a_child_is_followed_however_it_was_made() {
    for kind in ["fork-exec", "vfork", "spawn"] {
        let (run, symbols) = run(kind);
        let (pid, status) = child(&run);
        assert_eq!(status, 5, "{kind}");
        let image = run.processes.iter().rfind(|p| p.pid == pid).expect(kind);
        assert_eq!(image.image & ImageFlags::FORKED, 0, "{kind}");
        assert_most_of_200_ms(image, &symbols, "exec_work", kind);
    }
}

#[test]
fn exec_of_the_program_itself_makes_a_second_image() {
    let (run, symbols) = run("exec");
    assert_eq!(run.processes.len(), 2);
    assert_eq!(run.processes[0].pid, run.processes[1].pid);
    assert_most_of_200_ms(&run.processes[0], &symbols, "parent_work", "exec");
    assert_most_of_200_ms(&run.processes[1], &symbols, "exec_work", "exec");
}

#[test]
fn a_raw_clone_runs_unsampled_and_unharmed() {
    let (run, symbols) = run("clone");
    let (_, status) = child(&run);
    assert_eq!(status, 4);
    assert_eq!(run.processes.len(), 1);
    assert_most_of_200_ms(&run.processes[0], &symbols, "parent_work", "clone");
    assert_eq!(time_in(&run.processes[0], &symbols, "child_work"), 0);
}

#[test]
fn hundreds_of_short_children_all_end_as_they_should() {
    let (run, _) = run("many");
    assert_eq!(run.stdout.trim(), "0");
}

#[test]
fn without_children_only_the_program_itself_is_sampled_and_the_environment_is_clean() {
    let session = Session::new();
    session.page().follow_children.store(0, std::sync::atomic::Ordering::Relaxed);
    // The shell is not the only process to sample, so it must not be sampled.
    let run = session.run(session.command("/bin/sh").args(["-c", "env; exit 3"]));
    assert_eq!(run.status.code(), Some(3));
    assert_eq!(run.processes.len(), 0);

    // Now it is; its children see no trace of the library.
    use std::os::unix::process::CommandExt;
    let page = session.page();
    let mut command = session.command("/bin/sh");
    command.args(["-c", "env; exit 4"]);
    // SAFETY: getpid and a store to shared memory are all that happens between fork and exec.
    unsafe {
        command.pre_exec(|| {
            page.only_pid.store(libc::getpid() as u32, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        });
    }
    let run = session.run(&mut command);
    assert_eq!(run.status.code(), Some(4));
    assert_eq!(run.processes.len(), 1);
    assert!(run.stdout.contains("PATH="));
    assert!(
        !run.stdout.contains("STACKGLASS_SESSION") && !run.stdout.contains("LD_PRELOAD"),
        "{}",
        run.stdout
    );
}
