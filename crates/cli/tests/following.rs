//! Children and images after an exec are recorded, unless flags say otherwise; their times are right.

use crate::support::{Place, stackglass, text};
use stackglass_profile::{End, Recording, State};
use std::time::{Duration, SystemTime};

fn busy(time: &str) -> String {
    format!("{} demo-workload --time {time}", stackglass())
}

/// CPU time with a function on the stack, in seconds.
fn cpu_under(recording: &Recording, function: &str) -> f64 {
    let named = |id| recording.symbols.frames_of(id).any(|frame| frame.func.ends_with(function));
    let under = |stack| recording.stacks.walk(stack).any(named);
    let awake = recording.samples.iter().filter(|sample| sample.state == State::Awake && under(sample.stack));
    awake.map(|sample| sample.time.seconds()).sum()
}

fn programs(recording: &Recording) -> Vec<String> {
    let name = |exe: &str| exe.rsplit('/').next().unwrap_or_default().to_string();
    recording.processes.iter().map(|process| name(&process.exe)).collect()
}

#[test]
fn children_of_a_shell_are_recorded() {
    let place = Place::new();
    let script = format!("{} & wait", busy("500ms"));
    let output = place.run(["record", "-o", "r.glass", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recording = place.recording("r.glass");
    assert!(programs(&recording).contains(&"stackglass".to_string()), "{:?}", programs(&recording));
    assert!(cpu_under(&recording, "compute") > 0.02, "{}", cpu_under(&recording, "compute"));
    let child = recording.processes.iter().find(|process| process.exe.ends_with("stackglass")).unwrap();
    assert!(recording.processes.iter().any(|process| process.pid == child.parent));
}

#[test]
fn the_image_after_exec_is_a_process_of_its_own() {
    let place = Place::new();
    let script = format!("exec {}", busy("300ms"));
    assert!(place.run(["record", "-o", "r.glass", "--", "sh", "-c", &script]).status.success());
    let recording = place.recording("r.glass");
    assert_eq!(programs(&recording).last().map(String::as_str), Some("stackglass"));
    let pids: Vec<u32> = recording.processes.iter().map(|process| process.pid).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert!(cpu_under(&recording, "compute") > 0.02);
}

#[test]
fn children_are_left_alone_when_asked() {
    let place = Place::new();
    let script = format!("{} & wait", busy("300ms"));
    assert!(
        place.run(["record", "--no-children", "-o", "r.glass", "--", "sh", "-c", &script]).status.success()
    );
    let recording = place.recording("r.glass");
    assert_eq!(recording.processes.len(), 1, "{:?}", programs(&recording));
    assert_eq!(cpu_under(&recording, "compute"), 0.0);
}

#[test]
fn a_duration_ends_the_recording_but_not_the_program() {
    let place = Place::new();
    let script = format!("{}; echo done", busy("2s"));
    let output = place.run(["record", "--duration", "300ms", "-o", "r.glass", "--", "sh", "-c", &script]);
    assert_eq!(text(&output.stdout), "done\n");
    let recording = place.recording("r.glass");
    assert_eq!(recording.info.end, Some(End::Running));
    let wall = recording.info.wall.seconds();
    assert!((0.3..1.5).contains(&wall), "{wall}");
    assert!(cpu_under(&recording, "compute") > 0.01);
}

#[test]
fn a_delayed_start_leaves_the_beginning_out() {
    let place = Place::new();
    let script = format!("{}; echo > worked; sleep 0.6", busy("300ms"));
    // On a slow machine the work may take longer than the delay of sampling: try again with a longer delay.
    for delay in [Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(20)] {
        let _ = std::fs::remove_file(place.file("worked"));
        let start = SystemTime::now();
        let flag = format!("--delay-start={}ms", delay.as_millis());
        // Long enough that sampling starts while it runs.
        let script =
            format!("{script}; sleep {}", delay.saturating_sub(Duration::from_millis(600)).as_secs_f64());
        assert!(place.run(["record", &flag, "-o", "r.glass", "--", "sh", "-c", &script]).status.success());
        let wall = start.elapsed().unwrap();
        let worked = std::fs::metadata(place.file("worked")).unwrap().modified().unwrap();
        if worked.duration_since(start).unwrap() > delay - Duration::from_millis(50) {
            continue;
        }
        let recording = place.recording("r.glass");
        assert_eq!(cpu_under(&recording, "compute"), 0.0);
        assert!(recording.info.wall.seconds() <= (wall - delay).as_secs_f64());
        return;
    }
    panic!("0.3 s of work took longer than 20 s");
}

#[test]
fn a_program_that_ends_before_sampling_begins_is_told_of() {
    let place = Place::new();
    let output = place.run(["record", "--delay-start", "60s", "--", "true"]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("before the sampling began"), "{}", text(&output.stderr));
}

#[test]
fn a_cleared_environment_hides_nothing_from_outside() {
    let place = Place::new();
    let script = format!("env -i {}", busy("500ms"));
    let output = place.run(["record", "-o", "r.glass", "--", "sh", "-c", &script]);
    assert!(output.status.success());
    let recording = place.recording("r.glass");
    assert!(programs(&recording).contains(&"stackglass".to_string()), "{:?}", programs(&recording));
    assert!(cpu_under(&recording, "compute") > 0.02, "{}", cpu_under(&recording, "compute"));
}

#[test]
fn time_in_programs_that_cannot_be_sampled_has_a_reason() {
    let place = Place::new();
    let script = format!("env -i {}", busy("500ms"));
    let output = place.run(["record", "--sampler", "preload", "-o", "r.glass", "--", "sh", "-c", &script]);
    assert!(output.status.success());
    let message = text(&output.stderr);
    assert!(message.replace("\n     ", "").contains("programs that cannot be sampled"), "{message}");
}

#[test]
fn a_full_buffer_ends_sampling_and_says_so() {
    let place = Place::new();
    let mut arguments = vec!["record", "--n", "500", "-o", "r.glass", "--"];
    let command = busy("300ms");
    arguments.extend(command.split(' '));
    let output = place.run(&arguments);
    assert!(output.status.success());
    let recording = place.recording("r.glass");
    assert!(recording.info.full);
    assert!(text(&output.stderr).contains("500"), "{}", text(&output.stderr));
}

#[test]
fn time_adds_up() {
    let place = Place::new();
    let command = busy("1s");
    let mut arguments = vec!["record", "-o", "r.glass", "--"];
    arguments.extend(command.split(' '));
    assert!(place.run(&arguments).status.success());
    let recording = place.recording("r.glass");
    let kernel = recording.info.kernel_cpu.unwrap().seconds();
    let seen: f64 = recording.threads.iter().map(|thread| thread.cpu.seconds()).sum();
    // The kernel counts the CPU time of the sampler as that of the program.
    assert!(seen <= kernel * 1.02 && seen > kernel * 0.8, "{seen} of {kernel}");
    assert!(recording.threads.iter().any(|thread| &*thread.name == "sleeper"));
    assert!(
        recording.processes[0].end.is_some() && recording.threads.iter().all(|thread| thread.end.is_some())
    );
}
