//! Programs that confine themselves by seccomp(2) and are killed by any system call but their own: under every door that puts the
//! library into them, they end as alone. Also programs that start confined.

use std::path::Path;
use std::process::Command;
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
