//! Programs that confine themselves by seccomp(2) and are killed by any system call but their own: under every door that puts the
//! library into them, they end as alone. Also programs that start confined, and those that redirect their calls to SIGSYS.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use whole_programs::{Folder, Language, host, stackglass};

/// Output and status, as a shell shows it.
type Did = (String, Option<i32>);

fn run(words: &[&str], folder: &Path) -> Did {
    // A shell tells of a signal by its number.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\"; exit $?", "sh", "timeout", "60"]).args(words).current_dir(folder);
    let output = command.output().expect("a shell starts");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Commands that put the library into a program.
const DOORS: [&[&str]; 6] = [
    &["run"],
    &["run", "--allocs"],
    &["record", "--quiet", "--delay", "100us", "--allocs"],
    &["record", "--quiet", "--delay", "100us", "--allocs", "--heap-at", "exit"],
    &["record", "--quiet", "--delay", "1ms", "--walltime", "--sampler", "preload"],
    &["record", "--quiet", "--delay", "100us", "--sampler", "preload"],
];

/// The doors without a thread of the library, and without a wait at the end.
const QUIET_DOORS: usize = 3;

#[track_caller]
fn ends_as_alone(words: &[&str], doors: &[&[&str]], printed: &str) {
    let folder = Folder::new();
    let alone = run(words, folder.path());
    assert_eq!(alone, (printed.to_owned(), Some(0)), "alone: {words:?}");
    for door in doors {
        let mut all = vec![stackglass().to_str().expect("a path is text")];
        all.extend(door.iter().copied());
        all.push("--");
        all.extend(words);
        assert_eq!(run(&all, folder.path()), alone, "{door:?}: {words:?}");
    }
}

/// A program that confines itself in this way, and what it does then.
#[track_caller]
fn confined(arguments: &[&str], doors: &[&[&str]], printed: &str) {
    let program = host("filtered", Language::C);
    let mut words = vec![program.to_str().expect("a path is text")];
    words.extend(arguments);
    ends_as_alone(&words, doors, printed);
}

#[test]
fn a_thread_behind_a_filter() {
    for how in ["prctl", "syscall"] {
        confined(&[how, "one", "allocate"], &DOORS, "confined\nends\n");
    }
}

#[test]
fn all_threads_behind_a_filter() {
    confined(&["syscall", "all", "allocate"], &DOORS, "confined\nends\n");
}

#[test]
fn strict_mode() {
    for how in ["prctl", "syscall"] {
        confined(&[how, "strict", "allocate"], &DOORS, "confined\nends\n");
    }
}

#[test]
fn threads_and_children_behind_a_filter() {
    confined(&["prctl", "one", "threads"], &DOORS, "confined\nends\n");
    confined(&["prctl", "one", "fork"], &DOORS, "confined\nchild\nends\n");
}

/// The library cannot know of such a filter, so its exit handler makes no call in any case.
#[test]
fn a_filter_that_the_library_has_not_seen() {
    for scope in ["one", "strict"] {
        confined(&["raw", scope, "end"], &DOORS[..QUIET_DOORS], "confined\nends\n");
    }
}

/// The loader opens, reads and closes this program's libraries, and the library does no more than that.
#[test]
fn a_program_that_starts_confined() {
    confined(&["start", "one", "end"], &DOORS, "confined\nends\n");
}

/// Syscall User Dispatch: a thread that computes gets SIGSYS in place of any call, also for the return from a handler and for a call
/// that a tracer makes it do.
#[test]
fn a_thread_that_redirects_its_calls() {
    let program = host("redirected", Language::C);
    let program = program.to_str().expect("a path is text");
    let peaks: &[&str] = &["record", "--quiet", "--allocs", "--heap-at", "peak"];
    let doors = [&DOORS[..], &[peaks]].concat();
    for how in ["prctl", "syscall"] {
        ends_as_alone(&[program, how, "grows"], &doors, "ready\nredirected 0\n");
    }
}

/// Runs a command on the host `redirected` while that computes, which then ends as alone.
fn beside_redirected(what: &str, words: &[&str]) -> Output {
    let folder = Folder::new();
    let mut program = Command::new(host("redirected", Language::C));
    let mut program = program.args(["prctl", what]).stdout(Stdio::piped()).spawn().expect("the host starts");
    let mut said = BufReader::new(program.stdout.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("the host says something");
    let pid = program.id().to_string();
    let mut command = Command::new(stackglass());
    let output =
        command.args(words).arg(&pid).current_dir(folder.path()).output().expect("the command starts");
    said.read_to_string(&mut line).expect("the host says something");
    let status = program.wait().expect("the host ends");
    assert!(status.success(), "{what}, {words:?}: {status}");
    assert_eq!(line, "ready\nredirected 0\n", "{what}, {words:?}");
    output
}

/// What is said when the process is not copied. Kernels before 6.4 do not tell who redirects calls.
#[test]
fn a_process_that_redirects_its_calls_is_copied_by_another_thread_or_not() {
    const REFUSED: &str = "Syscall User Dispatch";
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for verb in [&["heap", "take"][..], &["tasks"]] {
        let alone = beside_redirected("computes", verb);
        assert!(said(&alone).contains(REFUSED), "{verb:?}: {}", said(&alone));
        assert_eq!(said(&alone).lines().count(), 1, "{verb:?}: {}", said(&alone));
        // The thread that sleeps makes the call, nobody does, or a thread that computes beside.
        let ways: [(&str, &[&str]); 3] =
            [("computes", &["--interrupt-calls"]), ("computes", &["--stop"]), ("beside", &[])];
        for (what, more) in ways {
            let output = beside_redirected(what, &[verb, more].concat());
            assert!(!said(&output).contains(REFUSED), "{what}, {verb:?} {more:?}: {}", said(&output));
        }
    }
}
