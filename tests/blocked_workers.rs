//! Tasks whose polls last, and the threads that poll them: `tests/awaits/src/blockers.rs`.

use serde_json::Value;
use stackglass_perf::breakpoint::Breakpoint;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use whole_programs::{Background, awaits, stackglass};

/// Looks until a task on a busy machine has had a CPU for 100 ms.
const TRIES: usize = 10;

/// The program, until it is dropped, and the ids of its tasks.
struct Host {
    child: Background,
    ids: HashMap<String, u64>,
}

impl Host {
    fn start(kind: &str) -> Host {
        let mut command = Command::new(awaits());
        let mut child = Background::start(command.args(["block", kind]).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        let lines = lines.map_while(Result::ok).take_while(|line| line != "READY");
        let id = |line: String| {
            let mut words = line.split(' ');
            let name = words.next().expect("a name").to_owned();
            (name, words.next().and_then(|id| id.parse().ok()).expect("an id"))
        };
        let ids = lines.map(id).collect();
        Host { child, ids }
    }

    fn text(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(stackglass());
        command.arg("tasks").arg(self.child.id().to_string()).args(arguments).env("COLUMNS", "80");
        let output = command.output().expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The answer in which all `expected` tasks are said to block their worker. `loops` may be: on a busy machine, it may have had
    /// too little of a CPU. No others may be named.
    fn blocking(&self, expected: &[&str]) -> Value {
        let mut last = Value::Null;
        for _ in 0..TRIES {
            last = serde_json::from_str(&self.text(&["--json"])).expect("the output is JSON");
            let name = |id: &Value| {
                let known = self.ids.iter().find(|(_, known)| id.as_u64() == Some(**known));
                known.map_or_else(|| id.to_string(), |(name, _)| name.clone())
            };
            let mut names: Vec<String> =
                last["blocking"].as_array().expect("a list").iter().map(name).collect();
            names.sort();
            let may_be_named = |name: &String| name == "loops" || expected.contains(&&**name);
            assert!(names.iter().all(may_be_named), "{names:?}: {last}");
            if expected.iter().all(|expected| names.iter().any(|name| name == expected)) {
                return last;
            }
        }
        panic!("only some of {expected:?}: {last}");
    }

    /// The group of a task.
    fn group<'a>(&self, tasks: &'a Value, name: &str) -> &'a Value {
        let groups = tasks["groups"].as_array().expect("groups");
        let has = |group: &&Value| group["ids"].as_array().expect("ids").contains(&self.ids[name].into());
        groups.iter().find(has).expect("every task is in a group")
    }
}

/// The number of the line that ends in `// @name`.
fn line(name: &str) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("awaits/src/blockers.rs");
    let text = std::fs::read_to_string(path).expect("a source is text");
    let marked = text.lines().position(|line| line.ends_with(&format!("// @{name}")));
    marked.expect("the line is marked") as u64 + 1
}

/// The innermost line of the program's own code in the stack of a group's thread.
fn own_line(group: &Value) -> u64 {
    let stack = group["thread"]["stack"].as_array().expect("a stack");
    let own = |frame: &&Value| frame["file"].as_str().is_some_and(|file| file.ends_with("blockers.rs"));
    stack.iter().find(own).and_then(|frame| frame["line"].as_u64()).expect("an own frame")
}

#[test]
fn tasks_that_block_their_worker_are_named() {
    let host = Host::start("multi");
    let tasks = host.blocking(&["locks", "sleeps"]);
    for (name, own) in [("sleeps", "block_sleep"), ("loops", "block_loop"), ("locks", "block_lock")] {
        let group = host.group(&tasks, name);
        assert_eq!((group["state"].as_str(), own_line(group)), (Some("running"), line(own)), "{group}");
        let lasts = group["thread"]["polled_for"].as_u64().expect("it is known to be one poll");
        assert!(lasts >= 100_000_000 || name == "loops", "{group}");
        // The frames of the runtime below the task's own code are left out.
        let outermost = group["thread"]["stack"].as_array().expect("a stack").last().expect("a frame");
        let function = outermost["function"].as_str().expect("a name");
        assert!(function.contains(name), "{group}");
    }
    // Its worker's other tasks have another thread.
    let in_place = host.group(&tasks, "in_place");
    assert_eq!(in_place["thread"]["in_place"], true, "{in_place}");
    assert_eq!(own_line(in_place), line("block_in_place"));
    let function = tasks["groups"].as_array().expect("groups").iter();
    let function = function.filter(|group| group["state"] == "blocking").collect::<Vec<_>>();
    assert_eq!(function.len(), 1, "{tasks}");
    assert_eq!(own_line(function[0]), line("block_function"));
}

#[test]
#[ignore = "long: three programs, some seconds each"]
fn a_blocked_current_thread_runtime() {
    for (kind, own) in [("sleeps", "block_sleep"), ("loops", "block_loop"), ("locks", "block_lock")] {
        let host = Host::start(kind);
        let tasks = host.blocking(&[kind]);
        assert_eq!(own_line(host.group(&tasks, kind)), line(own));
        let text = host.text(&[]);
        let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        // On a busy machine, a loop may have had too little of the CPU this time.
        if kind != "loops" {
            let id = host.ids[kind];
            assert!(head.join(" ").contains(&format!("blocks its worker: task {id} ")), "{text}");
            assert!(head.iter().any(|row| row.contains(&format!("blockers.rs:{}", line(own)))), "{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

fn never_blocks(times: u32) {
    for kind in ["yields", "short", "woken"] {
        let host = Host::start(kind);
        for _ in 0..times {
            host.blocking(&[]);
        }
    }
}

#[test]
fn tasks_that_never_rest_do_not_block() {
    never_blocks(1);
}

#[test]
#[ignore = "long: thirty readings"]
fn tasks_that_never_rest_never_block() {
    never_blocks(10);
}

#[test]
fn peeks_show_tasks() {
    let host = Host::start("sleeps");
    let pid = host.child.id().to_string();
    let peek = |arguments: &[&str]| {
        let mut command = Command::new(stackglass());
        command.args(["peek", &pid, "--duration", "300ms"]).args(arguments).env("COLUMNS", "80");
        let output = command.output().expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for driver in ["perf", "ptrace"] {
        let text = peek(&["--driver", driver]);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}: {text}"));
        let tasks = at("blocks its worker: task ");
        assert!(at("A stacktrace will print") < tasks && tasks < at("A report will print now"), "{text}");
        assert!(text.contains(&format!("blockers.rs:{}", line("block_sleep"))), "{text}");
    }
    let json: Value = serde_json::from_str(&peek(&["--json"])).expect("the output is JSON");
    assert_eq!(json["tasks"]["blocking"][0], host.ids["sleeps"], "{json}");
    // A program without tasks.
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let pid = child.id().to_string();
    let output = Command::new(stackglass()).args(["peek", &pid, "--json", "--duration", "100ms"]).output();
    let _ = child.kill();
    let _ = child.wait();
    let output = output.expect("the command starts");
    let json: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert!(json["tasks"].is_null(), "{json}");
}

/// All breakpoints of all threads are taken, as by debuggers.
#[test]
fn sleepers_are_known_without_breakpoints() {
    let host = Host::start("multi");
    let folder = format!("/proc/{}/task", host.child.id());
    let mut taken = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the host lives") {
        let tid = entry.expect("a thread").file_name().to_string_lossy().parse().expect("an id");
        for number in 1..=4 {
            match Breakpoint::set(tid, number * 16) {
                Ok(breakpoint) => taken.push(breakpoint),
                Err(error) => return eprintln!("not tested here: {error}"),
            }
        }
        assert!(Breakpoint::set(tid, 128).is_err(), "there are more than four");
    }
    let tasks = host.blocking(&["locks", "sleeps"]);
    // This may be one poll or several.
    let group = host.group(&tasks, "loops");
    assert!(tasks["blocking"].as_array().expect("a list").len() == 2, "{tasks}");
    assert_eq!(group["thread"]["seen_again"], true, "{group}");
    assert!(group["thread"]["polled_for"].is_null(), "{group}");
}

/// All keys of objects, at any depth.
fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            found.push(key.clone());
            keys(member, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn keys_of_tasks_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let section = text.split("\n## ").find(|section| section.starts_with("`stackglass tasks`"));
    let table = section.and_then(|section| section.rsplit("```").next()).expect("a table");
    let host = Host::start("multi");
    let tasks = host.blocking(&["locks", "sleeps"]);
    let mut found = Vec::new();
    keys(&tasks, &mut found);
    for key in [
        "pid", "groups", "function", "file", "line", "remarks", "kind", "address", "holders", "waiters",
        "task",
    ] {
        found.retain(|found| found != key);
    }
    assert!(found.iter().any(|key| key == "polled_for"), "{tasks}");
    for key in found {
        assert!(table.contains(&format!("`{key}`")), "`{key}` is not documented");
    }
}

#[test]
fn thousands_of_short_polls_are_no_long_one() {
    let host = Host::start("multi");
    let tasks = host.blocking(&["locks", "sleeps"]);
    for name in ["yields", "short", "woken", "wakes"] {
        let group = host.group(&tasks, name);
        assert!(group["thread"].is_null() || group["thread"]["polled_for"].is_null(), "{group}");
    }
}

/// Each function once, and those without a thread as queued.
#[test]
fn functions_of_a_pool_that_is_exhausted() {
    let host = Host::start("pool");
    let tasks: Value = serde_json::from_str(&host.text(&["--json"])).expect("the output is JSON");
    let count = |state: &str| {
        let groups = tasks["groups"].as_array().expect("groups").iter();
        groups
            .filter(|group| group["state"] == state)
            .filter_map(|group| group["count"].as_u64())
            .sum::<u64>()
    };
    assert_eq!([count("blocking"), count("queued")], [4, 3], "{tasks}");
    let pools = serde_json::json!([{"busy": 4, "queued": 3, "exhausted": true}]);
    assert_eq!(tasks["pools"], pools, "{tasks}");
    let text = host.text(&[]);
    assert!(text.contains("blocking pool exhausted: 4 busy, 3 wait\n"), "{text}");
}
