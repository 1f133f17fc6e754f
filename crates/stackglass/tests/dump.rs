//! `task::dump()` in a program that has prepared nothing: all tasks of tokio, by types, in spite of threads that wait for any child.
#![allow(unsafe_code, reason = "system calls")]

use stackglass::model::task_dump::{AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, TaskState};
use stackglass::task::{DumpError, TaskExt};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Counts of children and descriptors must not mix.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const OUTER: u32 = line!() + 2;
async fn outer() {
    inner().await
}

const INNER: u32 = line!() + 2;
async fn inner() {
    Box::pin(tokio::time::sleep(HOUR)).await
}

/// The lines of an await stack in this file, outermost first, and its leaf.
fn lines(task: &DumpedTask) -> (Vec<u32>, String) {
    let (mut lines, mut leaf) = (Vec::new(), String::new());
    let mut frames: &[AwaitFrame] = &task.stack;
    while let [frame] = frames {
        match &frame.point {
            AwaitPoint::Await(Some((file, line))) if file.ends_with("dump.rs") => lines.push(*line),
            AwaitPoint::Leaf => leaf = frame.function.to_string(),
            _ => {}
        }
        frames = &frame.children;
    }
    (lines, leaf)
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_time().build().unwrap()
}

/// Until all of so many tasks wait.
fn dump(tasks: usize) -> stackglass::task::TaskDump {
    loop {
        let dump = stackglass::task::dump().unwrap();
        if dump.tasks().iter().filter(|task| task.state == TaskState::Waiting).count() == tasks {
            return dump;
        }
        assert!(dump.tasks().len() <= tasks && dump.model().remarks.len() <= 1, "{:#?}", dump.model());
    }
}

fn descriptors() -> BTreeSet<String> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    all.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

fn children() -> Vec<String> {
    let all = std::fs::read_dir("/proc/self/task").unwrap();
    let of =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    all.filter_map(Result::ok)
        .map(of)
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn tasks_without_names_are_read_and_nothing_is_left_behind() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let runtime = runtime();
    let _tasks = [runtime.spawn(outer()), runtime.spawn(outer()), runtime.spawn(outer().task("named"))];
    // A program that waits for any child, as an init or a shell does, finds none of ours.
    let stop = AtomicBool::new(false);
    let (before, dump) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let mut status = 0;
                // SAFETY: `status` is live.
                let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
                assert!(pid <= 0, "process {pid} was found");
            }
        });
        let before = descriptors();
        let dump = dump(3);
        stop.store(true, Ordering::Relaxed);
        (before, dump)
    });
    assert_eq!(descriptors(), before);
    assert_eq!(children(), Vec::<String>::new());
    assert_eq!(dump.model().remarks, Vec::<String>::new());
    for task in dump.tasks() {
        assert_eq!(task.source, AwaitSource::Types);
        assert_eq!(lines(task), (vec![OUTER, INNER], "tokio::time::sleep::Sleep".to_owned()), "{task:#?}");
    }
    let names: Vec<_> = dump.tasks().iter().filter_map(|task| task.given_name.as_deref()).collect();
    assert_eq!(names, ["named"]);
    assert_eq!(dump.model().pid, std::process::id());
    let text = dump.to_string();
    assert!(text.contains(&format!("dump.rs:{INNER}")) && text.contains("tokio"), "{text}");
}

/// A program that may not be traced, as one under a debugger.
#[test]
fn where_tasks_cannot_be_read_the_error_says_why() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let runtime = runtime();
    let status = || std::fs::read_to_string("/proc/self/status").unwrap();
    let test = std::env::current_exe().unwrap();
    if std::env::var_os("STACKGLASS_TRACED").is_none() {
        // This test again, with a thread of a tracer that is its parent.
        traced(&test);
        return;
    }
    // Until it is traced.
    while status().lines().any(|line| line == "TracerPid:\t0") {
        std::thread::yield_now();
    }
    let _tasks = [runtime.spawn(outer().task("named"))];
    let error = stackglass::task::dump().unwrap_err();
    let DumpError::NotRead(text) = &error else { panic!("{error:?}") };
    assert!(text.contains("traced by"), "{text}");
}

/// Runs this program under a tracer, as a debugger would.
fn traced(test: &std::path::Path) {
    let mut command = std::process::Command::new(test);
    command.args(["--exact", "where_tasks_cannot_be_read_the_error_says_why"]).env("STACKGLASS_TRACED", "1");
    let mut child = command.spawn().unwrap();
    let pid = child.id() as i32;
    // SAFETY: calls with integers; `PTRACE_SEIZE` does not stop the child.
    unsafe { assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0), 0) };
    let mut status = 0;
    loop {
        // SAFETY: `status` is live. A stop goes on, with its signal.
        unsafe {
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                break;
            }
            let signal = libc::WSTOPSIG(status);
            libc::ptrace(libc::PTRACE_CONT, pid, 0, if signal == libc::SIGTRAP { 0 } else { signal });
        }
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:x}");
    let _ = child.try_wait();
}
