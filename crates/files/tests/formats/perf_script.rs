//! Output of `perf script` that was recorded with perf 6.1: comments of `--header`, source lines, inlined functions, several
//! events in one file.

use stackglass_files::perf_script::{EventSamples, is_likely, read_events, read_from};
use stackglass_profile::{Frame, Recording};

const EVENTS: &str = include_str!("perf_script/events.txt");
const INLINED: &str = include_str!("perf_script/inlined.txt");

/// The frames of each sample, innermost first.
fn stacks(recording: &Recording) -> Vec<Vec<Frame>> {
    let of = |sample: &stackglass_profile::Sample| {
        let locations = recording.stacks.walk(sample.stack);
        locations.flat_map(|location| recording.symbols.frames_of(location)).cloned().collect()
    };
    recording.samples.iter().map(of).collect()
}

fn samples(event: &EventSamples) -> u32 {
    event.recording.samples.iter().map(|sample| sample.hits).sum()
}

#[test]
fn events_are_kept_apart() {
    assert!(is_likely(&EVENTS[..512]), "by its header");
    let events = read_events(EVENTS.as_bytes()).unwrap();
    let counts: Vec<(&str, u32)> = events.iter().map(|event| (&*event.event, samples(event))).collect();
    assert_eq!(counts, [("cpu-clock", 6), ("page-faults", 3), ("context-switches", 2)], "CPU time first");
    for event in &events {
        let threads: Vec<_> =
            event.recording.threads.iter().map(|thread| (&*thread.name, thread.tid)).collect();
        assert_eq!(threads, [("w", 10605)], "{}", event.event);
    }
    assert_eq!(read_from(EVENTS.as_bytes()).unwrap().samples.len(), events[0].recording.samples.len());
}

#[test]
fn names_of_events_with_other_fields() {
    let named = |header: &str| {
        let text = format!("{header}\n\t    55d0c2a1b2c3 main+0x3 (/usr/bin/rg)\n\n");
        read_events(text.as_bytes()).unwrap().remove(0).event
    };
    assert_eq!(named("rg 4711/4712 [001] 12345.678901:    1000000 task-clock:u:"), "task-clock:u");
    assert_eq!(named("Web Content  99 12345.7:  cycles:P: "), "cycles:P");
    assert_eq!(named("w 11425 cpu-clock:u: "), "cpu-clock:u");
    assert_eq!(
        named("java  7 [000] 1.5: sched:sched_switch: prev_comm=java prev_pid=7 ==> next: x"),
        "sched:sched_switch"
    );
    assert_eq!(named("w 11425 12.5:"), "");
    assert_eq!(named("w"), "");
}

#[test]
fn source_lines_belong_to_their_frames() {
    let recording = read_from(INLINED.as_bytes()).unwrap();
    let all = stacks(&recording);
    let told = |frame: &Frame| (frame.func.to_string(), frame.file.to_string(), frame.line, frame.inlined);
    let stack: Vec<_> = all[0].iter().map(told).collect();
    let of = |name: &str, file: &str, line, inlined| (name.to_owned(), file.to_owned(), line, inlined);
    assert_eq!(
        stack,
        [
            of("spin", "w.c", 4, true),
            of("work", "w.c", 5, false),
            of("main", "w.c", 6, false),
            of("", "", -1, false)
        ]
    );
    assert_eq!(all.len(), recording.samples.len());
    // A place in a module is no file.
    for frame in stacks(&read_from(EVENTS.as_bytes()).unwrap()).iter().flatten() {
        assert!(!frame.file.contains(['[', ']', ':']), "{frame:?}");
        assert!(frame.file.is_empty() || frame.line > 0, "{frame:?}");
    }
}

#[test]
fn odd_source_lines() {
    let text = "\
rg 1 1.0: cpu-clock:
\t    55d0c2a1b2c3 rg::run+0x3 (/usr/bin/rg)
  src/main.rs:12 (discriminator 3)
|12          let x = run();
\t    55d0c2a1b2d3 helper (/usr/bin/rg)
  bad file.c:7
\t    55d0c2a1b2e3 main+0x3 (/usr/bin/rg)
  ??:0
  ffffffff8175336a expanded_tab ([kernel.kallsyms])
";
    let all = stacks(&read_from(text.as_bytes()).unwrap());
    let told: Vec<_> = all[0].iter().map(|frame| (&*frame.func, &*frame.file, frame.line)).collect();
    assert_eq!(
        told,
        [
            ("rg::run", "src/main.rs", 12),
            ("helper", "bad file.c", 7),
            ("main", "", -1),
            ("expanded_tab", "", -1)
        ]
    );
    assert!(!all[0][0].foreign && all[0][1].foreign, "a Rust file tells");
}
