//! A program that delivers pages of its memory itself, by userfaultfd(2): nobody asks it for one, and nobody waits for one.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, Record, ended_by, host, stackglass};

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
    let record = flags.iter().fold(Record::new(program), |record, flag| record.flag(flag));
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

/// The program, while its pages are away.
struct Served {
    /// The program, or the command that has started it.
    started: Child,
    pid: String,
    folder: Folder,
}

impl Served {
    /// Starts it with these words before its name. `None` where userfaultfd is not allowed.
    fn start(before: &[&str], arguments: &[&str]) -> Option<Served> {
        let program = host("served", Language::C);
        if !is_allowed(&program) {
            return None;
        }
        let folder = Folder::new();
        let mut words = before.iter().map(std::ffi::OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().expect("a name"));
        command.args(words).args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        let out = File::create(folder.path().join("out")).expect("a temporary file can be made");
        let started = command.stdout(out).spawn().expect("the program can be started");
        let mut served = Served { pid: started.id().to_string(), started, folder };
        let begin = Instant::now();
        while !served.read("out").contains("away") {
            assert!(begin.elapsed() < Duration::from_secs(40), "its pages do not go away");
            std::thread::sleep(Duration::from_millis(2));
        }
        let children = format!("/proc/{0}/task/{0}/children", served.pid);
        let children = std::fs::read_to_string(children).expect("it runs");
        if let Some(child) = children.split_ascii_whitespace().next() {
            served.pid = child.to_owned();
        }
        Some(served)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Starts the command; `PID` stands for the program.
    fn start_command(&self, words: &[&str]) -> Child {
        let file = |name: &str| {
            let path = self.folder.path().join(name);
            File::create(path).expect("a temporary file can be made")
        };
        let mut command = Command::new(stackglass());
        command.args(words.iter().map(|word| if *word == "PID" { &*self.pid } else { word }));
        command.stdin(Stdio::null()).stdout(file("said")).stderr(file("said-too"));
        command.current_dir(self.folder.path()).spawn().expect("the command can be started")
    }

    /// The program ends as it does alone.
    #[track_caller]
    fn ends_unasked(mut self) {
        let begin = Instant::now();
        while self.started.try_wait().expect("a child can be waited for").is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the program stands still");
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = self.started.wait().expect("a child can be waited for").code();
        assert_eq!((code, &*self.read("out")), (Some(0), UNASKED));
    }
}

/// Runs the command on the program while its pages are away.
#[track_caller]
fn runs(words: &[&str]) {
    ends_with(&[], words, 0, "");
}

/// The same for a program that these words start. The command ends with this status and says this.
#[track_caller]
fn ends_with(before: &[&str], words: &[&str], status: i32, says: &str) {
    let Some(served) = Served::start(before, &["2000"]) else { return };
    let code = ended(served.start_command(words));
    let said = [served.read("said"), served.read("said-too")].concat();
    assert_eq!(code, Some(status), "{words:?}: {said}");
    assert!(said.contains(says), "{words:?}: {said}");
    served.ends_unasked();
}

/// The command is ended by a signal in the middle of its work; the program goes on.
#[track_caller]
fn interrupted(before: &[&str], words: &[&str]) {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let Some(served) = Served::start(before, &["3000"]) else { return };
        let mut command = served.start_command(words);
        std::thread::sleep(Duration::from_millis(700));
        let early = command.try_wait().expect("a child can be waited for");
        assert_eq!(early, None, "{words:?}: {}", served.read("said-too"));
        ended_by(signal, &mut command);
        assert!(!served.read("out").contains("early"), "{words:?}: it ended too late");
        served.ends_unasked();
    }
}

#[test]
fn attached_by_perf_events() {
    runs(&["record", "-q", "--driver=perf", "--duration=300ms", "-o", "r.glass", "--pid", "PID"]);
}

#[test]
fn attached_by_ptrace() {
    runs(&["record", "-q", "--driver=ptrace", "--duration=300ms", "-o", "r.glass", "--pid", "PID"]);
}

#[test]
fn peeked_at() {
    runs(&["peek", "PID", "--duration=300ms"]);
}

#[test]
fn its_heap_is_not_copied_before_its_monitor() {
    ends_with(&[], &["heap", "take", "PID", "-o", "h.heapsnapshot"], 125, "uses userfaultfd");
}

#[test]
fn its_heap_is_taken_while_it_is_stopped() {
    runs(&["heap", "take", "PID", "--stop", "-o", "h.heapsnapshot"]);
}

#[test]
fn its_tasks_are_not_read_in_a_copy() {
    ends_with(&[], &["tasks", "PID"], 125, "");
}

#[test]
fn watched_live() {
    runs(&["top", "--json", "PID"]);
}

#[test]
fn its_allocations_are_recorded_for_a_moment() {
    let stackglass = stackglass().to_str().expect("the path is text");
    let words = ["allocs", "--pid", "PID", "--duration=300ms"];
    // It allocates nothing.
    ends_with(&[stackglass, "run", "--"], &words, 125, "allocated nothing");
}

/// The refusal is one line, and the monitor gets no event.
#[test]
fn a_monitor_of_forks_hears_of_no_copy() {
    for words in [&["heap", "take", "PID", "-o", "h.heapsnapshot"][..], &["tasks", "PID"]] {
        let Some(served) = Served::start(&[], &["1000", "forks"]) else { return };
        assert_eq!(ended(served.start_command(words)), Some(125), "{words:?}");
        let said = served.read("said-too");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        served.ends_unasked();
    }
}

#[test]
fn recordings_end_at_a_signal() {
    interrupted(&[], &["record", "-q", "-o", "r.glass", "--pid", "PID"]);
}

#[test]
fn peeks_end_at_a_signal() {
    interrupted(&[], &["peek", "PID", "--duration=20s"]);
}

#[test]
fn live_views_end_at_a_signal() {
    interrupted(&[], &["top", "--json", "PID"]);
}

#[test]
fn recordings_of_allocations_end_at_a_signal() {
    let stackglass = stackglass().to_str().expect("the path is text");
    interrupted(&[stackglass, "run", "--"], &["allocs", "--pid", "PID", "--duration=20s"]);
}
