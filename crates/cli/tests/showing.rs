//! The output of print, info, help, the manual page and the completions, on a terminal and in a pipe.

use crate::support::samples::{julia, recorded};
use crate::support::{Place, Terminal, text};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

#[test]
fn print_says_the_same_on_a_terminal_and_in_a_pipe() {
    let place = recorded();
    let (status, printed) = Terminal::start(place.stackglass(["print"])).end();
    assert_eq!(status, Some(0));
    assert!(printed.contains("compute") && printed.contains("\x1b["), "{printed}");
    assert!(!printed.contains("lang_start"), "{printed}");
    let on_terminal: Vec<String> = printed.lines().map(plain).collect();
    let widest = on_terminal.iter().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}");

    let mut command = place.stackglass(["print", "./r.glass"]);
    command.env("COLUMNS", "100").env("LINES", "40");
    let output = command.output().unwrap();
    let piped: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(piped, on_terminal);
    let summary = place.stdout_of(&["print", "--format", "summary", "--cols", "100"]);
    assert_eq!(summary.lines().collect::<Vec<_>>(), piped);
}

#[test]
fn the_answer_ends_a_small_screen() {
    let place = recorded();
    for (rows, columns) in [(24_usize, 80_usize), (16, 60), (50, 120)] {
        let mut command = place.stackglass(["print"]);
        command.env("COLUMNS", columns.to_string()).env("LINES", rows.to_string());
        let output = command.output().unwrap();
        let message = text(&output.stdout);
        assert!(message.lines().count() < rows, "one line is the prompt's: {message}");
        assert!(message.lines().all(|line| line.chars().count() <= columns), "{message}");
        let digest: Vec<&str> = message.rsplit("\n\n").next().unwrap().lines().collect();
        assert!(digest[0].contains(" wall, ") && digest[1].contains(" samples in "), "{message}");
        // On a busy machine, a line on time without a CPU is among them, and the answer is shorter.
        assert!(digest.last().unwrap().contains(" % "), "{message}");
    }
    let mut command = place.stackglass(["record", "-o", "later.glass", "--", "true"]);
    command.env("LINES", "24").env("COLUMNS", "80");
    let message = text(&command.output().unwrap().stderr);
    assert!(message.starts_with("stackglass: recorded to later.glass\n"), "{message}");
    assert!(message.lines().count() < 24, "{message}");
}

#[test]
fn colours_and_width_are_the_users_choice() {
    let place = recorded();
    let mut command = place.stackglass(["print"]);
    command.env("NO_COLOR", "1").env("COLUMNS", "60");
    let (_, printed) = Terminal::start(command).end();
    assert!(!printed.contains("\x1b["), "{printed}");
    assert!(printed.lines().all(|line| line.trim_end_matches('\r').chars().count() <= 60), "{printed}");
    for format in ["tree", "flat"] {
        let output = place.run(["print", "--format", format, "--cols", "90"]);
        let message = text(&output.stdout);
        let rows = message.lines().filter(|line| !line.starts_with("Total snapshots"));
        assert!(
            rows.clone().count() > 10 && rows.clone().all(|line| line.chars().count() <= 90),
            "{message}"
        );
        assert!(message.contains("Total snapshots"), "{message}");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let place = recorded();
    for arguments in [
        vec!["print"],
        vec!["print", "--format", "flat"],
        vec!["print", "--all"],
        vec!["callers", "--regex", "."],
        vec!["annotate", "--all"],
        vec!["convert", "r.glass", "-", "--to=folded"],
        vec!["info"],
        vec!["man"],
        vec!["completions", "bash"],
    ] {
        let mut child =
            place.stackglass(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        let lost = message.starts_with("stackglass: lost: ") && message.lines().count() == 1;
        assert!(status.code() == Some(0) && (message.is_empty() || lost), "{arguments:?}: {message}");
    }
}

#[test]
fn info_names_processes_threads_modules_and_counters() {
    let place = recorded();
    let output = place.run(["info"]);
    let message = text(&output.stdout);
    for expected in [
        "demo-workload",
        "sleeper",
        "waiter",
        "stackglass",
        "libc.so.6",
        "stacks of running threads",
        "sampler       ",
        "exited with status 0",
    ] {
        assert!(message.contains(expected), "{expected} is missing in {message}");
    }
}

#[test]
fn info_has_a_line_for_recorded_allocations() {
    use stackglass_profile::{
        AllocatingProcess, AllocationSampling, Nanos, Process, ProcessIndex, Recording,
    };
    let place = Place::new();
    let mut recording = Recording::default();
    for (pid, sampling) in [(7, AllocationSampling::Every), (8, AllocationSampling::Bytes(4096))] {
        recording.processes.push(Process { pid, ..Process::default() });
        recording.allocations.processes.push(AllocatingProcess {
            process: ProcessIndex(pid - 7),
            begin: Nanos(0),
            end: Nanos(2_000_000_000),
            sampling,
            peak_at: Nanos(0),
            lost: u64::from(pid),
            without_stack: u64::from(pid - 7),
            memory: Vec::new(),
        });
    }
    stackglass_files::write(place.file("a.glass"), &recording).unwrap();
    let message = place.stdout_of(&["info", "a.glass"]);
    for line in [
        "  allocations   every one, 0 groups, 0.000 s to 2.000 s, 7 lost\n",
        "  allocations   one sample in 4096 bytes, 0 groups, 0.000 s to 2.000 s, 8 lost, 1 without a stack\n",
    ] {
        assert!(message.contains(line), "{message}");
    }
}

#[test]
fn info_has_one_row_for_many_of_one_name() {
    use stackglass_profile::{Nanos, Process, ProcessIndex, Recording, RecordingInfo, Thread};
    let place = Place::new();
    let info = RecordingInfo { delay: Nanos(1_000_000), ..RecordingInfo::default() };
    let mut recording = Recording { info, ..Recording::default() };
    let mut start = |pid: u32, exe: &str, names: &[String]| {
        let process = ProcessIndex(recording.processes.len() as u32);
        recording.processes.push(Process { pid, exe: exe.into(), ..Process::default() });
        for (at, name) in names.iter().enumerate() {
            recording.threads.push(Thread {
                process,
                tid: pid + at as u32,
                name: name.as_str().into(),
                start: Nanos(0),
                end: None,
                cpu: Nanos(1_000_000),
                blocked_signal: false,
            });
        }
    };
    let workers = (0..500).map(|number| format!("worker-{number}"));
    start(1000, "/bin/server", &std::iter::once("main".to_owned()).chain(workers).collect::<Vec<_>>());
    (0..40).for_each(|number| start(2000 + number, "/bin/cc1", &["cc1".to_owned()]));
    stackglass_files::write(place.file("a.glass"), &recording).unwrap();
    let message = place.stdout_of(&["info", "a.glass"]);
    assert!(message.lines().count() < 40, "{message}");
    assert!(message.contains("   500 ×  worker-*") && message.contains("       1  main "), "{message}");
    assert!(message.contains("\n40 processes of cc1 (ids 2000, 2001, 2002, 2003, …"), "{message}");
    let all = place.stdout_of(&["info", "--all", "a.glass"]);
    assert!(all.contains(" worker-499 ") && all.contains("process 2039 "), "{all}");
}

#[test]
fn info_of_samples_from_elsewhere_says_what_is_not_known() {
    let place = Place::new();
    fs::write(place.file("a.folded"), "main 1\nmain;f 4\n").unwrap();
    assert!(place.run(["convert", "a.folded", "b.glass"]).status.success());
    fs::copy(julia("samples-threads.jlprof"), place.file("c.jlprof")).unwrap();
    for (file, samples) in
        [("a.folded", "samples       5\n"), ("b.glass", "samples       5\n"), ("c.jlprof", "samples       ")]
    {
        let message = place.stdout_of(&["info", file]);
        for label in ["command", "wall time", "CPU time", "own CPU time", "delay", "limit", "machine"] {
            let line = format!("\n  {label:<13} unknown\n");
            assert!(message.contains(&line), "{file}: {label}: {message}");
        }
        assert!(
            message.contains(samples) && message.contains("thread  name") && !message.contains("process"),
            "{message}"
        );
        let bytes = fs::read(place.file(file)).unwrap();
        let piped = place.run_with_input(&["info", "-"], &bytes);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        assert!(text(&piped.stdout).starts_with("standard input\n  command       unknown\n"), "{file}");
    }
}

#[test]
fn info_of_a_recording_in_a_pipe_is_that_of_the_file() {
    let place = recorded();
    let bytes = fs::read(place.file("r.glass")).unwrap();
    let piped = text(&place.run_with_input(&["info", "-"], &bytes).stdout);
    let of_file = place.stdout_of(&["info", "r.glass"]);
    let facts = |message: &str| {
        let lines = message.lines().skip(1).filter(|line| !line.starts_with("  samples"));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    assert!(facts(&of_file).len() > 20, "{of_file}");
    assert_eq!(facts(&piped), facts(&of_file));
}

#[test]
fn what_is_no_recording_hides_none() {
    let place = recorded();
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::options().write(true).open(place.file("r.glass")).unwrap().set_modified(old).unwrap();
    fs::write(place.file("empty.glass"), "").unwrap();
    for verb in ["info", "print", "annotate"] {
        let output = place.run([verb]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{verb}");
        let message = text(&output.stderr);
        assert_eq!(message, "stackglass: ./empty.glass is empty: using ./r.glass instead\n", "{verb}");
    }
    fs::write(place.file("odd.glass"), "x").unwrap();
    assert!(text(&place.run(["info"]).stderr).contains("; 1 more: using ./r.glass instead"));
    fs::remove_file(place.file("r.glass")).unwrap();
    let message = place.refused(&["print"]);
    assert!(message.contains("no recording") && message.contains(".glass is"), "{message}");
}

#[test]
fn the_newest_recording_is_the_default() {
    let place = recorded();
    assert!(place.run(["record", "--quiet", "-o", "later.glass", "--", "true"]).status.success());
    let output = place.run(["info"]);
    assert!(text(&output.stdout).starts_with("./later.glass"), "{}", text(&output.stdout));
}

#[test]
fn a_recording_replaces_no_other_unless_it_is_named() {
    let place = Place::new();
    for name in ["true.glass", "true-2.glass", "true-3.glass"] {
        let output = place.run(["record", "--", "true"]);
        assert!(text(&output.stderr).contains(&format!("recorded to {name}\n")), "{}", text(&output.stderr));
        assert!(text(&place.run(["info"]).stdout).starts_with(&format!("./{name}\n")), "{name}");
    }
    // At the same time.
    let both = ["1", "2"].map(|_| place.stackglass(["record", "-q", "--", "sleep", "0.2"]).spawn().unwrap());
    both.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(names.contains(&"sleep.glass".into()) && names.contains(&"sleep-2.glass".into()), "{names:?}");
    // A program that does not start leaves no file, and a named file is replaced.
    fs::write(place.file("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(place.file("script"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(place.run(["record", "--", "./script"]).status.code(), Some(127));
    assert!(!place.file("script.glass").exists());
    assert!(place.run(["record", "-q", "-o", "true.glass", "--", "sh", "-c", ":"]).status.success());
    assert_eq!(place.recording("true.glass").info.command[0], "sh");
}

#[test]
fn a_selection_of_nothing_says_what_there_is() {
    let place = recorded();
    for verb in [vec!["print", "--format", "flat"], vec!["flamegraph"]] {
        let of = |flag: &str, value: &str| place.refused(&[&verb[..], &[flag, value]].concat());
        assert!(of("--threads", "9999").contains("there are threads 1"), "{verb:?}");
        assert!(of("--tasks", "0x123456").contains("there are tasks 0x"), "{verb:?}");
    }
    let message = place.refused(&["flamegraph", "--filter", "no_such_name"]);
    assert!(message.contains("no frame matches `no_such_name`: there are `"), "{message}");
    assert!(!place.file("r.html").exists());
}

#[test]
fn the_words_of_a_report_are_explained() {
    let place = Place::new();
    let help = text(&place.run(["help", "report"]).stdout);
    for word in ["on CPU", "ready", "asleep", "samples", "own ms", "\u{21bb}", "\u{22ef}", "\u{d7}4", "Notes"]
    {
        assert!(help.contains(word), "{word}: {help}");
    }
    assert_eq!(text(&place.run(["report"]).stdout).trim_end(), help.trim_end());
}

#[test]
fn help_man_page_and_completions_come_from_the_same_flags() {
    let place = Place::new();
    let help = text(&place.run(["--help"]).stdout);
    assert!(help.contains("Examples:") && help.contains("stackglass record --"), "{help}");
    let flags = ["--delay", "--delay-start", "--duration", "--no-children", "--output", "--n"];
    let help = text(&place.run(["record", "--help"]).stdout);
    let man = text(&place.run(["man", "record"]).stdout).replace('\\', "");
    let bash = text(&place.run(["completions", "bash"]).stdout);
    for flag in flags {
        for (what, message) in [("help", &help), ("man", &man), ("completions", &bash)] {
            assert!(message.contains(flag), "{flag} is missing in the {what}");
        }
    }
    for (verb, flags) in [
        ("print", &["--format", "--sortedby", "--groupby", "--recur", "--no-combine", "--output"][..]),
        ("callers", &["--regex", "--file", "--line"]),
        ("annotate", &["--file", "--context", "--asleep"]),
        ("convert", &["--to"]),
    ] {
        let help = text(&place.run([verb, "--help"]).stdout);
        let man = text(&place.run(["man", verb]).stdout).replace('\\', "");
        assert!(help.contains("Examples:") && help.contains("stackglass "), "{help}");
        for flag in flags {
            assert!(help.contains(flag) && man.contains(flag) && bash.contains(flag), "{verb} {flag}");
        }
    }
    assert!(text(&place.run(["man"]).stdout).starts_with(".ie"));
    let hidden = text(&place.run(["--help"]).stdout);
    assert!(!hidden.contains("demo-workload"), "{hidden}");
}

#[test]
fn the_demo_reports_and_says_what_to_try_next() {
    let place = Place::new();
    let output = place.stackglass(["demo"]).env_remove("CARGO").output().unwrap();
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    for expected in ["smooth", "count_leaves", "compare", "sleeper", "Try next:", "stackglass record"] {
        assert!(message.contains(expected), "{expected} is missing in {message}");
    }
    let next = message.split("Try next:").nth(1).unwrap();
    assert!(next.lines().all(|line| line.len() <= 80), "{next}");
    assert!(place.recording("demo.glass").info.wall.seconds() < 15.0);
}

/// A line without its colour codes and links.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim_end_matches('\r');
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("\x1b]") { "\x1b\\" } else { "m" };
        rest = rest[at..].split_once(end).map_or("", |(_, after)| after);
    }
    out + rest
}
