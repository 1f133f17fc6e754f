//! Tasks that a program has named by the crate's own wrapper: of any executor, by their types; and without types, by their names.
//! The programs are `tests/awaits-wrapped`, and `tests/awaits-lines` without types in its debug information.

use serde_json::Value;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, TaskDump, TaskState};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use whole_programs::{Background, awaits, marked_lines, stackglass, with_lines};

/// The program, until it is dropped.
struct Host {
    child: Background,
    /// Names and stacks.
    expected: Vec<(String, String)>,
}

/// The program with types.
fn wrapped() -> PathBuf {
    awaits().with_file_name("awaits-wrapped")
}

/// The program without types.
fn lines_only() -> PathBuf {
    awaits().with_file_name("awaits-lines")
}

impl Host {
    fn start(program: &Path, arguments: &[&str]) -> Host {
        let mut child = Background::start(Command::new(program).args(arguments).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        let lines = lines.map_while(Result::ok).take_while(|line| line != "READY");
        let expected = lines.map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[0].to_owned(), words[2].to_owned())
        });
        let expected = expected.collect();
        Host { child, expected }
    }

    fn dump(&self) -> TaskDump {
        let options = stackglass_inspect::tasks::TasksOptions::default();
        stackglass_inspect::tasks::read(self.child.id(), &options).expect("the tasks are read")
    }

    fn command(&self, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(stackglass());
        command.arg("tasks").arg(self.child.id().to_string()).args(arguments).env_remove("COLUMNS");
        let output = command.output().expect("the command starts");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

fn is_own(frame: &AwaitFrame) -> Option<u32> {
    match &frame.point {
        AwaitPoint::Await(Some((file, line))) if file.contains("awaits/src/") => Some(*line),
        _ => None,
    }
}

/// A stack as the host writes it.
fn stack_text(stack: &[AwaitFrame]) -> String {
    let branches: Vec<String> = stack
        .iter()
        .map(|frame| {
            let rest = stack_text(&frame.children);
            match (&frame.point, is_own(frame)) {
                (_, Some(line)) => {
                    let rest = if rest.is_empty() { String::new() } else { format!(">{rest}") };
                    format!("{line}{rest}")
                }
                (AwaitPoint::Await(_), None) => rest,
                (AwaitPoint::Leaf, _) => {
                    let rest = if rest.is_empty() { String::new() } else { format!(">{rest}") };
                    format!("!{}{rest}", frame.function.rsplit("::").next().unwrap_or_default())
                }
                (point, _) => format!("?{point:?}"),
            }
        })
        .collect();
    match &branches[..] {
        [] => String::new(),
        [one] => one.clone(),
        more => format!("({})", more.join(",")),
    }
}

fn matches(expected: &str, got: &str) -> bool {
    match expected.strip_suffix("!*") {
        Some(begin) => got.starts_with(begin.trim_end_matches('>')) && !got.contains('?'),
        None => expected == got,
    }
}

fn named<'a>(dump: &'a TaskDump, name: &str) -> Vec<&'a DumpedTask> {
    dump.tasks.iter().filter(|task| task.given_name.as_deref() == Some(name)).collect()
}

#[test]
fn tasks_of_other_executors() {
    let host = Host::start(&wrapped(), &["executors"]);
    let dump = host.dump();
    let lines = marked_lines();
    assert_eq!(host.expected.len(), 9);
    // A wrapped future within another is no task of its own.
    assert_eq!(dump.count(), 9, "{dump:#?}");
    assert!(dump.remarks.is_empty(), "{:?}", dump.remarks);
    for (name, stack) in &host.expected {
        let [task] = &named(&dump, name)[..] else { panic!("{name} is there once: {dump:#?}") };
        let (file, _) = task.created.as_ref().expect("the place is known");
        assert!(file.ends_with("executors.rs"), "{file}");
        match &**stack {
            "polled" => {
                assert_eq!((task.state, task.stack.len()), (TaskState::Running, 0), "{task:?}");
                assert!(task.thread.as_ref().is_some_and(|thread| thread.tid != 0), "{task:?}");
            }
            "nothing" => {
                assert_eq!(task.source, AwaitSource::RootName, "{task:?}");
                assert_eq!(task.stack[0].point, AwaitPoint::NotStarted, "{task:?}");
            }
            stack => {
                assert_eq!((task.state, task.source), (TaskState::Waiting, AwaitSource::Types), "{name}");
                let (stack, got) = (with_lines(stack, &lines), stack_text(&task.stack));
                assert!(matches(&stack, &got), "{name} is {got}, not {stack}");
            }
        }
    }
}

#[test]
fn a_tokio_task_with_a_name_is_one_task() {
    let host = Host::start(&wrapped(), &["wrapped"]);
    let dump = host.dump();
    let lines = marked_lines();
    assert_eq!(host.expected.len(), 41);
    assert!(dump.runtimes.iter().all(|runtime| runtime.name.starts_with("tokio")), "{:?}", dump.runtimes);
    for (name, stack) in &host.expected {
        let [task] = &named(&dump, name)[..] else { panic!("{name} is there once: {dump:#?}") };
        assert!(task.id != 0 && task.created.is_some(), "{task:?}");
        let (stack, got) = (with_lines(stack, &lines), stack_text(&task.stack));
        assert!(matches(&stack, &got), "{name} is {got}, not {stack}");
    }
}

#[test]
fn without_types_names_and_places_are_known() {
    let host = Host::start(&lines_only(), &["executors"]);
    let dump = host.dump();
    for (name, stack) in &host.expected {
        let [task] = &named(&dump, name)[..] else { panic!("{name} is there once: {dump:#?}") };
        assert_eq!((task.source, task.stack.len()), (AwaitSource::RootName, usize::from(stack == "nothing")));
        assert_eq!(task.state == TaskState::Running, stack == "polled", "{task:?}");
        assert!(task.created.as_ref().is_some_and(|(file, _)| file.ends_with("executors.rs")), "{task:?}");
    }
    let (_, message) = host.command(&[]);
    assert!(message.contains("build their crate with `debug = 2`"), "{message}");
    assert!(message.lines().count() <= 2, "{message}");
}

#[test]
fn tasks_of_all_shapes_without_types_have_their_names() {
    let host = Host::start(&lines_only(), &["wrapped"]);
    assert_eq!(host.expected.len(), 41);
    let (bare, _) = host.command(&["--json"]);
    let bare: Value = serde_json::from_str(&bare).expect("the output is JSON");
    let groups = bare["groups"].as_array().expect("groups");
    assert!(groups.iter().all(|group| group["stack"].as_array().is_some_and(Vec::is_empty)), "{bare}");
    let dump = host.dump();
    for (name, _) in &host.expected {
        let [task] = &named(&dump, name)[..] else { panic!("{name} is there once: {dump:#?}") };
        assert_eq!((task.source, task.stack.len()), (AwaitSource::RootName, 0), "{task:?}");
    }
}

/// Output and messages of a peek. On a busy machine, reading types may take longer than a peek waits.
fn peek_with_tasks(host: &Host) -> (String, String) {
    let mut answer = peek(host);
    for _ in 0..10 {
        if !answer.1.contains("that takes more than") {
            break;
        }
        answer = peek(host);
    }
    answer
}

/// Output and messages of a peek.
fn peek(host: &Host) -> (String, String) {
    let mut command = Command::new(stackglass());
    command.args(["peek", &host.child.id().to_string(), "--duration", "300ms"]);
    let output = command.env("COLUMNS", "80").output().expect("the command starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn peeks_of_a_program_that_answers_show_its_tasks() {
    let host = Host::start(&wrapped(), &["wrapped"]);
    let tasks = host.dump().count();
    let (text, messages) = peek_with_tasks(&host);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}: {text}{messages}"));
    let (threads, found) = (at("\ncmd: "), at(&format!("\nawaits-wrapped: {tasks} tasks (")));
    assert!(threads < found && found < at("Profile collected"), "{text}");
    assert!(text.contains("waiting in awaits_wrapped::shapes::sleeps"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(messages, "stackglass: sampled by perf events: no thread is stopped\n");
    // A task is named and tokio's, and counts once.
    assert_eq!(tasks, host.expected.len() + UNNAMED, "{text}");
}

/// Tasks that the runtime or a server has started: `spawn_blocking`, connections, and of a `JoinSet`.
const UNNAMED: usize = 7;

#[test]
fn peeks_and_live_views_show_tasks_of_other_executors() {
    // Without types, a wrapped future within another one cannot be told apart.
    for (program, count) in [(wrapped(), 9), (lines_only(), 10)] {
        let host = Host::start(&program, &["executors"]);
        let (text, messages) = peek_with_tasks(&host);
        assert!(text.contains(&format!(": {count} tasks (")), "{text}{messages}");
        let mut live = stackglass_inspect::tasks::LiveTasks::new(host.child.id());
        for _ in 0..2 {
            let (dump, _) = live.read().expect("the tasks are read");
            assert_eq!(dump.count(), count, "{dump:#?}");
            for (name, _) in &host.expected {
                assert_eq!(named(&dump, name).len(), 1, "{name}: {dump:#?}");
            }
        }
    }
    // Tasks of tokio that are named as well count once.
    let host = Host::start(&wrapped(), &["wrapped"]);
    let (dump, _) =
        stackglass_inspect::tasks::LiveTasks::new(host.child.id()).read().expect("the tasks are read");
    assert_eq!(dump.count(), host.expected.len() + UNNAMED, "{dump:#?}");
    assert!(host.expected.iter().all(|(name, _)| named(&dump, name).len() == 1), "{dump:#?}");
}

/// What the program says of its own tasks.
struct OwnDump {
    /// Names, ids, and stacks as they should be.
    expected: Vec<(String, String, String)>,
    /// Id, given name, source, and stack.
    tasks: Vec<[String; 4]>,
    /// All other lines.
    lines: Vec<String>,
}

impl OwnDump {
    fn from_program(program: &Path, kind: &str) -> OwnDump {
        let mut command = Command::new(program);
        let mut child = Background::start(command.args(["own-dump", kind]).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "READY").collect();
        drop(Host { child, expected: Vec::new() });
        let mut dump = OwnDump { expected: Vec::new(), tasks: Vec::new(), lines: Vec::new() };
        for line in lines {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match &words[..] {
                [head, id, name, source, stack] if head == "TASK" => {
                    dump.tasks.push([id.clone(), name.clone(), source.clone(), stack.clone()]);
                }
                [head, ..] if head.chars().all(|char| char.is_ascii_uppercase()) => dump.lines.push(line),
                [name, id, stack] => dump.expected.push((name.clone(), id.clone(), stack.clone())),
                _ => dump.lines.push(line),
            }
        }
        dump
    }

    fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }
}

#[test]
fn a_program_reads_all_shapes_of_its_own_tasks() {
    let lines = marked_lines();
    for kind in ["shapes", "wrapped"] {
        let dump = OwnDump::from_program(&wrapped(), kind);
        assert_eq!(dump.expected.len(), 41);
        // The future of the program's own `block_on` may be missing.
        assert!(!dump.has("types"), "{:?}", dump.lines);
        let mut wrong = Vec::new();
        for (name, id, stack) in &dump.expected {
            let [[_, given, source, got]] =
                &dump.tasks.iter().filter(|[known, ..]| known == id).collect::<Vec<_>>()[..]
            else {
                panic!("{name} is there once: {:?}", dump.tasks)
            };
            assert_eq!((&**source, given == name), ("Types", kind == "wrapped"), "{name} {given}");
            let stack = with_lines(stack, &lines);
            if !matches(&stack, got) {
                wrong.push((name, stack, got));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn a_program_sees_its_own_deadlock() {
    let dump = OwnDump::from_program(&wrapped(), "deadlock");
    assert!(dump.has("deadlock") && !dump.has("DEADLOCKS 0") && !dump.has("HOLDERS 0"), "{:?}", dump.lines);
}

#[test]
fn a_program_without_types_lists_its_own_tasks_by_name() {
    let bare = OwnDump::from_program(&lines_only(), "wrapped");
    assert!(bare.has("`debug = 2`") && !bare.has("--ask"), "{:?}", bare.lines);
    assert!(bare.tasks.iter().all(|[_, _, source, stack]| source == "RootName" && stack.is_empty()));
    assert_eq!(bare.expected.len(), 41);
    for (name, ..) in &bare.expected {
        let count = bare.tasks.iter().filter(|[_, given, ..]| given == name).count();
        assert_eq!(count, 1, "{name}: {:?}", bare.tasks);
    }
}

#[test]
fn a_profile_that_a_program_without_types_takes_says_how_to_get_lines() {
    let said = |program: &Path| {
        let output = Command::new(program).arg("own-walltime").output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = said(&lines_only());
    assert!(text.contains("LEAF [waiting]") && text.contains("`debug = 2`"), "{text}");
    assert!(!text.contains("LEAF tokio::time::sleep::Sleep"), "{text}");
    let text = said(&wrapped());
    assert!(text.contains("LEAF tokio::time::sleep::Sleep") && !text.contains("`debug = 2`"), "{text}");
}
