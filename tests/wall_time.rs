//! Profiles by wall time of programs with async tasks: await stacks of tasks whose parts of the time are known.

use stackglass_profile::{Frame, Recording, Sample, State};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use whole_programs::{Background, Language, Outcome, Record, awaits, host, marked_lines, stackglass};

/// The frames of a sample, outermost first.
fn frames<'a>(recording: &'a Recording, sample: &Sample) -> Vec<&'a Frame> {
    let locations = recording.stacks.walk(sample.stack);
    let mut frames: Vec<&Frame> =
        locations.flat_map(|location| recording.symbols.frames_of(location)).collect();
    frames.reverse();
    frames
}

/// A stack as `function:line`, outermost first.
fn text(recording: &Recording, sample: &Sample) -> String {
    let frame = |frame: &&Frame| match frame.line {
        line if line > 0 => format!("{}:{line}", frame.func),
        _ => frame.func.to_string(),
    };
    frames(recording, sample).iter().map(frame).collect::<Vec<_>>().join(" > ")
}

/// Time and hits of the stacks that contain all of these texts.
fn sum(recording: &Recording, parts: &[&str]) -> (f64, u32) {
    let has_all = |sample: &&Sample| {
        let text = text(recording, sample);
        parts.iter().all(|part| text.contains(part))
    };
    let samples = recording.samples.iter().filter(has_all);
    samples.fold((0.0, 0), |(time, hits), sample| (time + sample.time.seconds(), hits + sample.hits))
}

/// The output of a command on a recording.
fn said(arguments: &[&str], outcome: &Outcome) -> String {
    let mut command = Command::new(stackglass());
    command.args(arguments).arg(&outcome.file).env_remove("COLUMNS");
    let output = command.output().expect("the command can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A recording of a number of seconds; of five times as many if there is not enough in it, since a busy machine reads types slowly.
fn long_enough(
    seconds: u32,
    record: impl Fn(u32) -> Outcome,
    is_enough: impl FnOnce(&Outcome) -> bool,
) -> Outcome {
    let run = |seconds| {
        let outcome = record(seconds);
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        outcome
    };
    let outcome = run(seconds);
    if is_enough(&outcome) { outcome } else { run(5 * seconds) }
}

/// The program that waits in known lines for a number of seconds.
fn waiting(program: impl AsRef<std::ffi::OsStr>, seconds: u32) -> Record {
    Record::new(program).args(["waits", &seconds.to_string()]).flag("--walltime")
}

/// The number of snapshots with the function of two lines.
fn snapshots(outcome: &Outcome) -> u32 {
    sum(&outcome.recording(), &["awaits::waits::two_lines"]).1
}

fn waits() -> Outcome {
    long_enough(8, |seconds| waiting(awaits(), seconds).run(), |outcome| snapshots(outcome) >= ENOUGH)
}

/// Samples of a task.
const ENOUGH: u32 = 25;

#[test]
fn tasks_wait_in_their_lines_for_their_parts_of_the_time() {
    let outcome = waits();
    let recording = outcome.recording();
    let lines = marked_lines();
    let at = |function: &str, line: &str| format!("awaits::waits::{function}:{}", lines[line]);
    assert!(recording.samples.iter().all(|sample| sample.state == State::Task && sample.task != 0));

    // The task says how long it has waited in each line.
    let waited: Vec<f64> = outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let truth = waited[0] / waited[1];
    // Its clock goes on while its sleep is over and it is not polled yet.
    let (first, hits) = sum(&recording, &[&at("two_lines", "first_line")]);
    let (second, more) = sum(&recording, &[&at("two_lines", "second_line")]);
    let (share, snapshots) = (first / (first + second), f64::from(hits + more));
    let error = (truth * (1.0 - truth) / snapshots).sqrt();
    assert!(snapshots > 8.0 && (share - truth).abs() < 4.0 * error + 0.02, "{share} {truth} {snapshots}");

    // Two tasks always wait in the same lines; a third one in two branches, which share its time.
    let whole = first + second;
    let one = format!(
        "{} > {} > tokio::time::sleep::Sleep",
        at("one_line", "outer_line"),
        at("nested", "only_line")
    );
    let two = format!(
        "{} > {} > tokio::time::sleep::Sleep",
        at("two_branches", "branches"),
        at("nested", "only_line")
    );
    let is_close = |time: f64, tasks: f64| (time / (whole * tasks) - 1.0).abs() < 0.15;
    assert!(is_close(sum(&recording, &[&one]).0, 2.0), "{:?} {whole}", sum(&recording, &[&one]));
    assert!(is_close(sum(&recording, &[&two]).0, 1.0), "{:?} {whole}", sum(&recording, &[&two]));

    // Polls and waits are in one tree: the function of a task is the root, and there is nothing of the runtime around it.
    let (burns, _) = sum(&recording, &["awaits::waits::busy", "awaits::waits::burn"]);
    assert!(burns > whole * 0.5, "{burns} of {whole}");
    for sample in &recording.samples {
        let text = text(&recording, sample);
        let is_own = text.starts_with("awaits::");
        assert!(is_own && !text.contains("tokio::runtime::task::raw::poll"), "{text}");
        assert!(!text.contains("busy") || text.starts_with("awaits::waits::busy"), "{text}");
    }
    assert!(sum(&recording, &["awaits::waits::blocking", "sleep"]).1 > 0);

    // They are the same frames, with nothing of `join!` between them.
    let below = |leaf: &str| {
        let (both, turns) = ("awaits::waits::both", "awaits::waits::turns");
        let found = recording.samples.iter().map(|sample| frames(&recording, sample)).find_map(|frames| {
            let has_all = frames.first().is_some_and(|frame| *frame.func == *both)
                && frames.iter().any(|frame| *frame.func == *turns)
                && frames.iter().any(|frame| frame.func.starts_with(leaf));
            has_all.then_some(frames)
        });
        let found = found.unwrap_or_else(|| panic!("turns is not seen in {leaf}"));
        let identity = |frame: &Frame| {
            (frame.func.to_string(), frame.file.clone(), frame.module.clone(), frame.inlined, frame.foreign)
        };
        let identities: Vec<_> = found[..2].iter().map(|frame| identity(frame)).collect();
        assert!(*found[1].func == *turns && found[2].func.starts_with(leaf), "{found:?}");
        identities
    };
    assert_eq!(below("tokio::time::sleep::Sleep"), below("awaits::waits::burn"));

    // Its child is said to be left out.
    let remarks = recording.info.remarks.join(" ");
    assert!(remarks.contains("1 child process of the program is not in this recording (sleep)"), "{remarks}");

    // Reports name the lines of the program, not the futures of tokio.
    let line = |name: &str| format!("waits.rs:{}", lines[name]);
    let screen = said(&["print"], &outcome);
    let last = screen.lines().last().unwrap_or_default();
    assert!(last.contains("of the time tasks wait") && last.contains(&line("only_line")), "{screen}");
    for (verb, flags) in [("hot", &["--wall"][..]), ("hot", &[]), ("callers", &["Sleep"]), ("annotate", &[])]
    {
        let text = said(&[&[verb], flags].concat(), &outcome);
        assert!(!text.contains("CPU"), "{text}");
        assert!(verb == "annotate" || text.contains(&line("only_line")), "{text}");
    }
    let hot = said(&["hot"], &outcome);
    let rows: Vec<&str> = hot.lines().filter(|row| row.contains("two_lines  waits in Sleep")).collect();
    assert!(rows.iter().any(|row| row.contains(&line("first_line"))), "{hot}");
    assert!(rows.iter().any(|row| row.contains(&line("second_line"))), "{hot}");

    // Each task counts with all of the time, however many there are.
    let total: f64 = recording.samples.iter().map(|sample| sample.time.seconds()).sum();
    let wall = recording.info.wall.seconds();
    assert!(whole > wall * 0.6 && whole < wall * 1.05, "{whole} of {wall}");
    assert!(total > whole * 4.0, "{total} of {whole}");

    // The lines are in all reports.
    let line = format!("waits.rs:{}", lines["only_line"]);
    assert!(said(&["print", "--all"], &outcome).contains(&line) || outcome.print().contains(&line));
    assert!(said(&["hot", "--wall", "--all"], &outcome).contains("awaits::waits::nested"));
    let folded = outcome.folder.path().join("waits.folded");
    let mut convert = Command::new(stackglass());
    let status = convert.arg("convert").arg(&outcome.file).arg(&folded).arg("--wall").status();
    assert!(status.expect("the command can be started").success());
    let folded = std::fs::read_to_string(folded).expect("it was written");
    assert!(folded.contains("awaits::waits::one_line;"), "{folded}");
}

/// Each task counts with its own time: many that live shortly, all at once, weigh as much as one that lives long.
#[test]
#[ignore = "long: shares of wall time"]
fn a_crowd_of_tasks_has_the_time_of_all_of_them() {
    let outcome = Record::new(awaits()).args(["crowd", "10"]).flag("--walltime").run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let recording = outcome.recording();
    let lived: Vec<f64> = outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let (one, snapshots) = sum(&recording, &["awaits::waits::accepts"]);
    let (others, _) = sum(&recording, &["awaits::waits::request"]);
    // All of them are in one snapshot, so that snapshots are counted.
    let part = lived[1] / 200.0 / lived[0];
    let error = ((1.0 - part) / part / f64::from(snapshots)).sqrt();
    // Nothing is seen before the types are read, which takes longer after a build.
    assert!(
        snapshots > 30 && (0.7..1.05).contains(&(one / lived[0])),
        "{one} of {lived:?}, {snapshots} snapshots"
    );
    let expected = lived[1] * one / lived[0];
    assert!(
        (others / expected - 1.0).abs() < 4.0 * error + 0.03,
        "{others} of {expected}, {snapshots} snapshots"
    );

    // Errors are those of snapshots: the one task is in all of them, the others are in few.
    let table: serde_json::Value = serde_json::from_str(&said(&["hot", "--json"], &outcome)).expect("JSON");
    let errors = |function: &str| -> f64 {
        let rows = table["rows"].as_array().expect("rows").iter();
        let own = rows.filter(|row| row["function"] == function);
        own.map(|row| row["error"].as_f64().unwrap_or(0.0)).sum::<f64>() * 1e-9
    };
    let uncertain = errors("awaits::waits::request");
    assert!(
        uncertain > others * 0.05 && (others - expected).abs() < 4.5 * uncertain,
        "{others} ± {uncertain}"
    );
    assert!(errors("awaits::waits::accepts") < one * 0.3, "{one} ± {}", errors("awaits::waits::accepts"));
}

#[test]
#[ignore = "long: shares of wall time"]
fn tasks_that_never_rest_have_possible_stacks() {
    let running =
        Record::new(awaits()).args(["busy", "4"]).flag("--walltime").flag("--duration").flag("15s").start();
    std::thread::sleep(std::time::Duration::from_secs(18));
    // The program does not end by itself.
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    let recording = outcome.recording();
    let lines = marked_lines();
    let at = |function: &str, line: &str| format!("awaits::never_rest::{function}:{}", lines[line]);
    let possible = [
        format!("{} > {} > tokio", at("busy", "busy_left"), at("left", "left")),
        format!("{} > {} > {} > tokio", at("busy", "busy_right"), at("right", "right"), at("deep", "deep")),
    ];
    let mut seen = 0;
    for sample in &recording.samples {
        let is_waiting = recording.is_waiting(sample.stack);
        let text = text(&recording, sample);
        if text.starts_with("awaits::never_rest::busy") && (is_waiting || text.ends_with("[ready]")) {
            seen += sample.hits;
            assert!(possible.iter().any(|possible| text.starts_with(possible)), "{text}");
        }
    }
    assert!(seen > 4, "{seen}");
}

/// Reading types takes a second or more, in which there is no snapshot.
#[test]
fn types_are_read_before_sampling_starts() {
    // The program runs for a second longer.
    let record = |seconds: u32| {
        let delay = format!("{}s", seconds - 1);
        let flags = ["--delay-start", &delay, "--duration", "500ms"];
        flags.into_iter().fold(waiting(awaits(), seconds), Record::flag).run()
    };
    let outcome = long_enough(9, record, |outcome| snapshots(outcome) > 0);
    assert!(snapshots(&outcome) > 0, "{:?}", outcome.recording().info.remarks);
}

#[test]
fn a_program_without_types_says_why_no_tasks_are_seen() {
    let lines = awaits().with_file_name("awaits-lines");
    let outcome = long_enough(
        4,
        |seconds| waiting(&lines, seconds).run(),
        |outcome| !outcome.recording().samples.is_empty(),
    );
    assert!(outcome.says("`debug = 2` in the Cargo profile of its own crate"), "{}", outcome.stderr);
    assert_eq!(snapshots(&outcome), 0);
    // Snapshots of tasks do not tell the CPU time of threads.
    assert!(said(&["info"], &outcome).contains(" unknown "));
}

/// A program without tasks has a profile of its threads. They are sampled from outside, like any recording.
#[test]
fn threads_without_tasks_have_their_parts_of_the_time() {
    let outcome = Record::new(host("naps", Language::C)).flag("--walltime").run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    assert!(outcome.says("no tasks of tokio are in it"), "{}", outcome.stderr);
    let recording = outcome.recording();
    assert!(recording.samples.iter().all(|sample| sample.state == State::Task && sample.task == 0));
    assert!(!recording.modules.iter().any(|module| module.path.contains("libstackglass")));

    let truth: Vec<f64> = outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let (slept, lived) = (truth[0] / 1e9, truth[1] / 1e9);
    // Its clock goes on while its sleep is over and it waits for a CPU.
    let ready = truth[2] / 1e9;
    let (napped, ticks) = sum(&recording, &["work", "nap"]);
    let (worked, _) = sum(&recording, &["work"]);
    let (waited, _) = sum(&recording, &["main", "join"]);
    let is_close = |time: f64, truth: f64| (time - truth).abs() < truth * 0.03 + ready;
    assert!(is_close(napped, slept), "{napped} of {slept}, {ready} ready");
    assert!(
        is_close(worked, lived) && is_close(waited, lived),
        "{worked} {waited} of {lived}, {ready} ready"
    );
    assert!(is_close(f64::from(ticks) / 1000.0, slept), "{ticks} of {slept}, {ready} ready");

    // Reports count all of it, and call it wall time.
    assert!(outcome.says("wall-time profile"), "{}", outcome.stderr);
    let hot = said(&["hot"], &outcome);
    assert!(hot.contains("of wall time of tasks") && !hot.contains("CPU"), "{hot}");
    let share =
        hot.lines().find(|line| line.contains("nanosleep")).and_then(|line| line.split_whitespace().next());
    let share: f64 = share.and_then(|share| share.parse().ok()).expect("a share");
    assert!((share - slept / lived * 50.0).abs() < 2.0 + ready / lived * 50.0, "{hot}");
    let file = outcome.file.to_str().expect("the path is text");
    let diff = said(&["diff", file], &outcome);
    assert!(diff.contains("wall time of tasks") && diff.contains("nap"), "{diff}");
}

/// Most brief sleeps fall between two reads. Each belongs to the function that sleeps so long, whatever the user may sample.
#[test]
#[ignore = "long: shares of wall time"]
fn brief_sleeps_have_their_parts_of_the_time() {
    let ordinary = ["setpriv", "--bounding-set=-perfmon,-sys_admin,-sys_ptrace"];
    for before in [&[][..], &ordinary] {
        if let [program, words @ ..] = before
            && !Command::new(program).args(words).arg("true").status().is_ok_and(|status| status.success())
        {
            eprintln!("only root can give up rights: nothing more is tested");
            continue;
        }
        let outcome = Record::new(host("sleeps", Language::C)).before(before).run();
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let recording = outcome.recording();
        let truth: Vec<f64> =
            outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let of = |state: State, function: &str| -> f64 {
            let has = |sample: &&Sample| sample.state == state && text(&recording, sample).contains(function);
            recording.samples.iter().filter(has).map(|sample| sample.time.seconds()).sum()
        };
        // The program's clock does not stop while it waits for a CPU after a sleep. A sleep that ends late is like others of
        // its length, which may be of either function.
        let unsure = of(State::Waiting, "") + truth[2] / 1e9;
        for (function, truth) in [("longer", truth[0] / 1e9), ("shorter", truth[1] / 1e9)] {
            let asleep = of(State::Asleep, function);
            assert!(
                (asleep - truth).abs() < truth * 0.1 + unsure,
                "{function}: {asleep} of {truth}, {unsure} unsure, {before:?}"
            );
        }
    }
}

/// A task snapshot must not begin the time-outs of sleeping threads anew. Other load makes timers late as well, so the best of several
/// tries counts.
#[test]
#[ignore = "long: shares of wall time"]
fn timers_are_not_late() {
    const TRIES: usize = 8;
    let late = |outcome: &Outcome| -> f64 {
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        outcome.stdout.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
    };
    let program = || Record::new(awaits()).args(["timers", "3"]).flag("--delay=1ms");
    let (mut recorded, mut plain) = (f64::MAX, f64::MAX);
    for _ in 0..TRIES {
        recorded = recorded.min(late(&program().flag("--walltime").run()));
        plain = plain.min(late(&program().run()));
        // With time-outs that begin anew, some 50 ms.
        if recorded < plain + 5.0 {
            return;
        }
    }
    panic!("{recorded} ms, {plain} ms without");
}

/// The program, until it is dropped.
struct Host(Background);

impl Host {
    fn start(arguments: &[&str]) -> Host {
        Host::start_program(awaits(), arguments)
    }

    fn start_program(program: &Path, arguments: &[&str]) -> Host {
        let mut child = Background::start(Command::new(program).args(arguments).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        lines.map_while(Result::ok).take_while(|line| line != "READY").for_each(drop);
        Host(child)
    }
}

/// Records a process for so long.
fn recorded(host: &Host, seconds: u32) -> Recording {
    let folder = whole_programs::Folder::new();
    let file = folder.path().join("host.glass");
    let mut command = Command::new(stackglass());
    command.args(["record", "--walltime", "--quiet", "--duration", &format!("{seconds}s"), "--pid"]);
    command.arg(host.0.id().to_string()).arg("-o").arg(&file);
    let output = command.output().expect("the command can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stackglass_files::read(&file).expect("a recording").0
}

/// By name of the task: the number of such tasks, their hits and time, and their stacks.
fn by_task(recording: &Recording) -> BTreeMap<String, (BTreeSet<u64>, u32, f64, BTreeSet<String>)> {
    let mut found: BTreeMap<String, (BTreeSet<u64>, u32, f64, BTreeSet<String>)> = BTreeMap::new();
    for sample in &recording.samples {
        let task = recording.tasks.iter().find(|task| task.id.0 == sample.task);
        let (ids, hits, time, stacks) =
            found.entry(task.map_or("", |task| &task.name).to_owned()).or_default();
        ids.insert(sample.task);
        *hits += sample.hits;
        *time += sample.time.seconds();
        stacks.insert(text(recording, sample));
    }
    found
}

/// Recordings of a host with enough snapshots, on a busy machine as well.
fn sampled(host: &Host, name: &str) -> BTreeMap<String, (BTreeSet<u64>, u32, f64, BTreeSet<String>)> {
    for seconds in [8, 40] {
        let found = by_task(&recorded(host, seconds));
        if found.get(name).is_some_and(|(_, hits, ..)| *hits > 4) {
            return found;
        }
    }
    panic!("{name} was not seen in 40 s");
}

#[test]
#[ignore = "long: shares of wall time"]
fn named_tasks_of_other_executors() {
    let host = Host::start_program(&awaits().with_file_name("awaits-wrapped"), &["executors"]);
    let found = sampled(&host, "smol_first");
    let lines = marked_lines();
    let at = |function: &str, line: &str| format!("awaits_wrapped::executors::{function}:{}", lines[line]);
    let parked = format!("{} > futures_channel::oneshot::Receiver", at("parked", "ex_parked"));
    let (nested, deeper) = (at("nested", "ex_nested"), at("inner", "ex_deeper"));
    let deep = format!("{nested} > {deeper} > {deeper} > {} > {parked}", at("inner", "ex_inner"));
    let expected = [
        ("pool_nested", vec![format!("{nested} > {} > {parked}", at("inner", "ex_inner"))]),
        ("pool_boxed", vec![format!("{} > {parked}", at("outer", "ex_outer"))]),
        ("pool_join", vec![format!("{}:{}", "{async block#0}", lines["ex_one"]), parked.clone()]),
        ("pool_lock", vec![at("waits_for_lock", "ex_lock")]),
        ("local_nested", vec![format!("{nested} > {deeper} > {} > {parked}", at("inner", "ex_inner"))]),
        ("smol_first", vec![deep.clone()]),
        ("smol_second", vec![deep]),
        ("smol_polled", vec!["awaits_wrapped::executors::polled".to_owned(), "nanosleep".to_owned()]),
        ("not_polled", vec!["[not started]".to_owned()]),
    ];
    let whole = found["smol_first"].2;
    for (name, parts) in expected {
        let (ids, _, time, stacks) =
            found.get(name).unwrap_or_else(|| panic!("{name} is missing: {found:#?}"));
        assert_eq!(ids.len(), 1, "{name}");
        assert!((time / whole - 1.0).abs() < 0.01, "{name}: {time} of {whole}");
        for part in parts {
            assert!(stacks.iter().any(|stack| stack.contains(&part)), "{name} is not in {part}: {stacks:#?}");
        }
    }
    // A wrapped future within another is no task.
    assert!(!found.contains_key("not a task of its own"), "{found:#?}");
}

#[test]
#[ignore = "long: shares of wall time"]
fn a_named_task_of_tokio_counts_once() {
    let host = Host::start_program(&awaits().with_file_name("awaits-wrapped"), &["wrapped-many", "300"]);
    // More tasks than one snapshot has.
    let recording = recorded(&host, 10);
    let recording = if recording.samples.len() >= 256 { recording } else { recorded(&host, 40) };
    let wrong = recording.tasks.iter().filter(|task| task.id.0 & 1 << 37 != 0 && task.id.0 & 3 << 38 == 0);
    assert_eq!(wrong.map(|task| &task.name).collect::<Vec<_>>(), Vec::<&std::sync::Arc<str>>::new());
    assert!(recording.samples.len() >= 256, "{}", recording.samples.len());
}

#[test]
fn a_server_that_runs_already() {
    let host = Host::start(&["hang"]);
    let folder = whole_programs::Folder::new();
    let file = folder.path().join("hang.glass");
    let mut command = Command::new(stackglass());
    command
        .args(["record", "--walltime", "--duration", "3s", "--quiet", "--pid"])
        .arg(host.0.id().to_string());
    let output = command.arg("-o").arg(&file).output().expect("the command can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (recording, completeness) = stackglass_files::read(&file).expect("a recording");
    assert!(completeness.is_complete());
    let lines = marked_lines();
    let lock = format!("awaits::hang::price:{}", lines["lock"]);
    let fetch = format!("awaits::hang::price:{} > awaits::hang::fetch:{}", lines["fetch"], lines["never"]);
    // Of 100 connections, one waits for the answer, all others for it. Each waits for the end of the server as well.
    let (waiting, answering) = (sum(&recording, &[&lock]), sum(&recording, &[&fetch]));
    assert!(answering.1 > 0 && waiting.1 > 0, "{waiting:?} {answering:?}");
    let ratio = waiting.0 / answering.0;
    assert!((80.0..120.0).contains(&ratio), "{ratio}");
}
