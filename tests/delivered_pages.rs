//! A program that delivers pages of its memory itself, by userfaultfd(2): nobody asks it for one, and nobody waits for one.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, Record, host, stackglass};

/// The program did not have to deliver pages to others. Its sum is that of its frames.
const UNASKED: &str = "away\nearly 0, sum 1641\n";
/// Its exit status where userfaultfd is not allowed.
const NOT_ALLOWED: i32 = 77;

fn is_allowed(program: &PathBuf) -> bool {
    let alone = Command::new(program).arg("1").output().expect("the program can be started");
    alone.status.code() != Some(NOT_ALLOWED)
}

fn recorded(flags: &[&str]) {
    let program = host("served", Language::C);
    if !is_allowed(&program) {
        return;
    }
    let record = flags.iter().fold(Record::of(program), |record, flag| record.flag(flag));
    record.args(["400"]).run().program_did(UNASKED, 0);
}

#[test]
fn recorded_by_perf_events() {
    recorded(&[]);
}

#[test]
fn recorded_by_ptrace() {
    recorded(&["--sampler=ptrace"]);
}

/// Waits for the end, and kills what stands still.
fn ended(mut child: Child) -> Option<i32> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    None
}

/// Runs the command on the program while its pages are away.
fn looked_at(words: &[&str]) {
    ends_with(words, 0, "");
}

/// The same; the command ends with this status and says this.
fn ends_with(words: &[&str], status: i32, says: &str) {
    let program = host("served", Language::C);
    if !is_allowed(&program) {
        return;
    }
    let folder = Folder::new();
    let file = |name: &str| File::create(folder.path().join(name)).expect("a temporary file can be made");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let mut command = Command::new(program);
    command.arg("2000").stdin(Stdio::null()).stdout(file("out"));
    let program = command.spawn().expect("the program can be started");
    let pid = program.id().to_string();
    let begin = Instant::now();
    while !read("out").contains("away") && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut look = Command::new(stackglass());
    look.args(words).arg(&pid).stdin(Stdio::null()).stdout(file("said")).stderr(file("said-too"));
    let look = look.current_dir(folder.path()).spawn().expect("the command can be started");
    let code = ended(look);
    assert_eq!(code, Some(status), "{words:?}: {}{}", read("said"), read("said-too"));
    assert!(read("said-too").contains(says), "{words:?}: {}", read("said-too"));
    assert_eq!((ended(program), &*read("out")), (Some(0), UNASKED), "{words:?}");
}

#[test]
fn attached_by_perf_events() {
    looked_at(&["record", "-q", "--driver=perf", "--duration=300ms", "-o", "r.glass", "--pid"]);
}

#[test]
fn attached_by_ptrace() {
    looked_at(&["record", "-q", "--driver=ptrace", "--duration=300ms", "-o", "r.glass", "--pid"]);
}

#[test]
fn peeked_at() {
    looked_at(&["peek", "--duration=300ms"]);
}

#[test]
fn its_heap_is_not_copied_before_its_monitor() {
    ends_with(&["heap", "take", "-o", "h.heapsnapshot"], 125, "uses userfaultfd");
}

#[test]
fn its_heap_is_taken_while_it_is_stopped() {
    looked_at(&["heap", "take", "--stop", "-o", "h.heapsnapshot"]);
}
