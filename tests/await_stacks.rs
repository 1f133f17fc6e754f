//! Await stacks of programs whose tasks wait at places that are known beforehand: `tests/awaits`.

use serde_json::Value;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Background, awaits, marked_lines, stackglass, with_lines};

/// A task, as the program describes it.
struct Expected {
    name: String,
    id: u64,
    stack: String,
}

/// The program, until it is dropped.
struct Host {
    child: Background,
    expected: Vec<Expected>,
}

impl Host {
    fn start(arguments: &[&str]) -> Host {
        Host::of(awaits(), arguments)
    }

    /// Starts a copy of the program.
    fn of(program: &Path, arguments: &[&str]) -> Host {
        let mut child = Background::start(Command::new(program).args(arguments).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "READY").collect();
        let expected = lines.iter().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            Expected { name: words[0].into(), id: words[1].parse().expect("an id"), stack: words[2].into() }
        });
        let expected = expected.collect();
        Host { child, expected }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(stackglass());
        command.arg("tasks").arg(self.pid()).args(arguments).env_remove("COLUMNS");
        let output = command.output().expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn tasks(&self) -> Value {
        serde_json::from_str(&self.text(&["--json"])).expect("the output is JSON")
    }

    /// The tasks whose stack is not the expected one. The lines of those that are right are compared one by one.
    fn wrong(&self, tasks: &Value) -> Vec<String> {
        let stacks = stacks(tasks);
        let lines = marked_lines();
        let is_wrong = |expected: &&Expected| {
            let got = stacks.get(&expected.id).map_or("nothing", String::as_str);
            !matches(&with_lines(&expected.stack, &lines), got)
        };
        let describe = |expected: &Expected| {
            format!("{}: {} is {:?}", expected.name, expected.stack, stacks.get(&expected.id))
        };
        assert!(!self.expected.is_empty());
        self.expected.iter().filter(is_wrong).map(describe).collect()
    }
}

fn matches(expected: &str, got: &str) -> bool {
    match expected.strip_suffix("!*").or(expected.strip_suffix('*')) {
        Some(begin) => got.starts_with(begin.trim_end_matches('>')) && !got.contains('?'),
        None => expected == got,
    }
}

/// By id: the stack of each task in the notation of the host. Frames of libraries are left out.
fn stacks(tasks: &Value) -> HashMap<u64, String> {
    let mut stacks = HashMap::new();
    for group in tasks["groups"].as_array().expect("groups") {
        let text = stack_text(&group["stack"]);
        for id in group["ids"].as_array().expect("ids") {
            stacks.insert(id.as_u64().expect("an id"), text.clone());
        }
    }
    stacks
}

fn stack_text(stack: &Value) -> String {
    let mut parts = Vec::new();
    for frame in stack.as_array().expect("a stack") {
        if let Some(branches) = frame["branches"].as_array() {
            let branches: Vec<String> = branches.iter().map(stack_text).collect();
            parts.push(format!("({})", branches.join(",")));
            continue;
        }
        match (frame["file"].as_str(), frame["line"].as_u64()) {
            (Some(file), Some(line)) if file.contains("tests/awaits/src/") => parts.push(line.to_string()),
            (Some(_), _) => {}
            _ if frame["note"] == "leaf" => {
                let name = frame["function"].as_str().unwrap_or_default();
                parts.push(format!("!{}", name.rsplit("::").next().unwrap_or(name)));
            }
            _ => parts.push(format!("?{frame}")),
        }
    }
    parts.join(">")
}

#[test]
fn all_shapes() {
    for runtime in ["shapes", "current-thread"] {
        let host = Host::start(&[runtime]);
        assert_eq!(host.expected.len(), 41);
        let wrong = host.wrong(&host.tasks());
        assert!(wrong.is_empty(), "{runtime}: {wrong:#?}");
    }
}

#[test]
fn a_dependency_without_debug_information() {
    let host = Host::start(&["bare"]);
    let id = |name: &str| host.expected.iter().find(|task| task.name == name).expect("a task").id;
    let tasks = host.tasks();
    assert_eq!(tasks["tasks"], 3, "{tasks}");
    let groups = tasks["groups"].as_array().expect("groups");
    let group = |id: u64| groups.iter().find(|group| group["ids"][0] == id).expect("its group");
    let own = marked_lines()["slp"].to_string();
    assert!(stack_text(&group(id("own"))["stack"]).starts_with(&own), "{tasks}");
    let bare = group(id("bare"));
    assert_eq!((&bare["state"], &bare["source"]), (&"waiting".into(), &"root name".into()), "{tasks}");
    assert_eq!(bare["stack"].as_array().map(Vec::len), Some(0), "{tasks}");
    // Its type is the library's own, but the symbols of its vtable name it.
    let boxed = group(id("boxed"));
    assert!(boxed["stack"].to_string().contains("awaits_bare::naps"), "{tasks}");
    let text = host.text(&[]);
    assert!(text.contains("the crate that spawns them"), "{text}");
}

/// A copy of the program without its debug information (`-g`), or without symbols as well (`-s`).
fn stripped(flag: &str, folder: &Path) -> PathBuf {
    let copy = folder.join("awaits");
    let status = Command::new("strip").arg(flag).arg("-o").arg(&copy).arg(awaits()).status();
    assert!(status.expect("strip starts").success());
    copy
}

/// The number of tasks, and by the name of each that the program names: its state, and the function of its future.
fn states_and_roots(host: &Host) -> (u64, BTreeMap<String, (String, String)>) {
    let tasks = host.tasks();
    let mut found = BTreeMap::new();
    for group in tasks["groups"].as_array().expect("groups") {
        let text = |key: &str| group[key].as_str().expect("a text").to_owned();
        for id in group["ids"].as_array().expect("ids") {
            if let Some(task) = host.expected.iter().find(|task| *id == task.id) {
                found.insert(task.name.clone(), (text("state"), text("root")));
            }
        }
    }
    assert_eq!(found.len(), host.expected.len(), "{tasks}");
    (tasks["tasks"].as_u64().expect("a number"), found)
}

/// A function as symbols name it: what is around and in a coroutine has no number, and its own body no name.
fn without_numbers(root: &str) -> String {
    let is_body = root.rsplit("::").next().is_some_and(|last| last.starts_with("{async"));
    let parts = root.split("::").map(|part| if part.starts_with('{') { "{closure}" } else { part });
    let path = parts.collect::<Vec<_>>().join("::");
    if is_body { path.trim_end_matches("::{closure}").to_owned() } else { path }
}

/// Whether an `async` function or block begins at a line: the function of this name, or a block.
fn is_written_at(root: &str, file: &str, line: usize) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = text.lines().nth(line - 1).expect("the file has this line");
    let last = root.rsplit("::").next().expect("a name");
    line.contains("async") && (last.starts_with('{') || line.contains(&format!("fn {last}")))
}

#[test]
fn symbols_alone_tell_state_and_function_of_each_task() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let program = stripped("-g", folder.path());
    let (mut named, mut all) = (0, 0);
    for scenario in [&["shapes"][..], &["block", "sleeps"]] {
        let (count, with_types) = states_and_roots(&Host::start(scenario));
        let host = Host::of(&program, scenario);
        let (count_by_symbols, by_symbols) = states_and_roots(&host);
        assert_eq!(count_by_symbols, count);
        all += by_symbols.len();
        for (name, (state, root)) in &by_symbols {
            let (true_state, true_root) = &with_types[name];
            assert_eq!(state, true_state, "{name}");
            let is_unknown = root == "(unknown future)";
            let place = root.strip_prefix("{async at ").and_then(|place| place.strip_suffix('}'));
            let is_right = match place.and_then(|place| place.split_once(':')) {
                Some((file, line)) => is_written_at(true_root, file, line.parse().expect("a line")),
                None => *root == without_numbers(true_root),
            };
            assert!(is_unknown || is_right, "{name} is {root}, not {true_root}");
            named += usize::from(!is_unknown);
        }
        let text = host.text(&[]);
        assert!(text.contains("`debug = 2`"), "{text}");
    }
    assert!(named * 10 >= all * 9, "{named} of {all}");
    std::fs::remove_file(&program).expect("it is there");
    let host = Host::of(&stripped("-s", folder.path()), &["bare"]);
    let output =
        Command::new(stackglass()).args(["tasks", &host.pid()]).output().expect("the command starts");
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), line.lines().count()), (Some(125), 1), "{line}");
    assert!(line.contains("no symbols") && line.contains("`strip = false` and `debug = 2`"), "{line}");
}

#[test]
fn local_set() {
    let host = Host::start(&["local"]);
    assert_eq!(host.expected.len(), 2);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(tasks["runtimes"].as_array().expect("runtimes").len(), 2, "{tasks}");
    let groups = tasks["groups"].as_array().expect("groups");
    let root = groups.iter().find(|group| group["state"] == "block_on").expect("the future of block_on");
    assert!(stack_text(&root["stack"]).starts_with(&marked_lines()["local_block_on"].to_string()), "{root}");
}

#[test]
fn all_of_many() {
    let host = Host::start(&["many", "3000"]);
    assert_eq!(host.expected.len(), 3000);
    let wrong = host.wrong(&host.tasks());
    assert!(wrong.is_empty(), "{} wrong, such as {:?}", wrong.len(), wrong[0]);
    let text = host.text(&[]);
    assert!(text.contains("3000 tasks waiting"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// The number of system calls of this process that read.
fn reads() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/io").expect("the kernel counts them");
    let reads = counters.lines().find_map(|line| line.strip_prefix("syscr: ")).expect("reads");
    reads.parse().expect("a number")
}

/// Each task is on a page of its own, and there are more than pages that are kept.
#[test]
fn scattered_tasks_are_read_a_few_times_each() {
    const TASKS: u64 = 20_000;
    let host = Host::start(&["scattered", &TASKS.to_string(), "64"]);
    let wrong = host.wrong(&host.tasks());
    assert!(wrong.is_empty(), "{} wrong, such as {:?}", wrong.len(), wrong[0]);
    let mut live = stackglass_inspect::tasks::LiveTasks::new(host.child.id());
    // The first answer reads types.
    live.read().expect("the tasks are read");
    let before = reads();
    let (dump, _) = live.read().expect("the tasks are read");
    let reads = reads() - before;
    assert_eq!(dump.count() as u64, TASKS);
    // Once in the search, and once together with its neighbours in the list.
    assert!(reads < 3 * TASKS + 2000, "{reads} reads");
}

/// A `select!` has its own line, also where futures of libraries are its only branches.
#[test]
fn selects_of_library_futures_have_their_line() {
    let host = Host::start(&["selects"]);
    assert_eq!(host.expected.len(), 7);
    let wrong = host.wrong(&host.tasks());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn all_views_fit_their_width() {
    for scenario in [["shapes", ""], ["block", "multi"]] {
        let host =
            Host::start(scenario.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().as_slice());
        // The narrowest width is the hardest, and these show all that the others do.
        let columns = 60;
        for view in [&["--all"][..], &["--tree", "--all"]] {
            let text = host.text(&[view, &["--cols", &columns.to_string()]].concat());
            let wide = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{view:?} {columns}: {text}");
        }
    }
}

#[test]
fn trees_show_branches_and_tasks_that_run() {
    let host = Host::start(&["shapes"]);
    let text = host.text(&["--tree"]);
    let line = marked_lines()["sel"];
    let begin = format!("      1 shapes.rs:{line} ");
    let lines = text.lines().skip_while(|line| !line.starts_with(&begin)).take(7);
    let names: Vec<&str> = lines.map(|line| &line[27..]).collect();
    let expected = [
        "awaits::shapes::selects",
        " ├ awaits::shapes::sleeps",
        " │ tokio::time::sleep::Sleep",
        " ├ awaits::shapes::notified",
        " │ tokio::sync::notify::Notified",
        " └ awaits::shapes::selects::{async block#0}",
        "   tokio::time::sleep::Sleep",
    ];
    assert_eq!(names, expected, "{text}");
    assert!(text.contains("::blocking::{closure#0} (spawn_blocking)"), "{text}");
    let host = Host::start(&["block", "multi"]);
    let text = host.text(&["--tree"]);
    assert!(text.contains(" (polled"), "{text}");
}

#[test]
fn deadlocks_are_said_first() {
    let host = Host::start(&["deadlock"]);
    let wrong = host.wrong(&host.tasks());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let id = |name: &str| host.expected.iter().find(|task| task.name == name).expect("a task").id;
    let tasks = host.tasks();
    let mut cycles: Vec<Vec<u64>> = Vec::new();
    for deadlock in tasks["deadlocks"].as_array().expect("deadlocks") {
        let ids = deadlock["tasks"].as_array().expect("tasks").iter();
        let mut ids: Vec<u64> = ids.map(|id| id.as_u64().expect("an id")).collect();
        ids.sort_unstable();
        cycles.push(ids);
    }
    cycles.sort();
    // A task with a timeout waits for a lock, too, but not for ever.
    assert_eq!(cycles, [vec![id("first"), id("second")], vec![id("itself")]]);
    assert!(
        tasks["deadlocks"].as_array().expect("deadlocks").iter().all(|deadlock| deadlock["certain"] == true)
    );
    // The future of `block_on`. At some levels of optimization several places fit, so nothing is said.
    let groups = tasks["groups"].as_array().expect("groups");
    for root in groups.iter().filter(|group| group["state"] == "block_on") {
        assert_eq!(stack_text(&root["stack"]), format!("{}>!Sleep", marked_lines()["block_on"]), "{root}");
    }
    let text = host.text(&[]);
    assert!(text.lines().take(3).any(|line| line.contains("deadlock")), "{text}");
    let holder = id("holder");
    let line = marked_lines()["holder"];
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("held by task {holder} at deadlocks.rs:{line}")), "{text}");
    // A guard that was dropped looks like one that is held, but the code that drops the task knows.
    let (dropped, next) = (id("dropped"), id("next_holder"));
    assert!(words.contains(&format!(", held by task {next} at deadlocks.rs:{line}")), "{text}");
    assert!(!words.contains(&format!("held by task {dropped}")) && !words.contains("probably"), "{text}");
}

#[test]
fn deadlocks_through_all_kinds_of_waits() {
    let host = Host::start(&["cycles"]);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut expected: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for task in &host.expected {
        if let Some((cycle, _)) = task.name.split_once('.') {
            expected.entry(cycle).or_default().push(task.id);
        }
    }
    let mut found = Vec::new();
    for deadlock in tasks["deadlocks"].as_array().expect("deadlocks") {
        let ids = deadlock["tasks"].as_array().expect("tasks").iter();
        let mut ids: Vec<u64> = ids.map(|id| id.as_u64().expect("an id")).collect();
        ids.sort_unstable();
        // Of a shadowed variable, it is not known whether it has the guard or something behind it has.
        let is_certain = expected.get("shadow").is_none_or(|shadow| *shadow != ids);
        assert_eq!(deadlock["certain"], is_certain, "{deadlock}");
        found.push(ids);
    }
    found.sort();
    let mut expected: Vec<Vec<u64>> = expected.into_values().collect();
    expected.sort();
    assert_eq!(found, expected, "{}", host.text(&["--all"]));
}

#[test]
fn deadlocks_of_tasks_with_branches() {
    let host = Host::start(&["branches"]);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let group = |id: &Value| {
        let task = host.expected.iter().find(|task| Some(task.id) == id.as_u64());
        task.and_then(|task| task.name.split_once('.')).map_or("", |(group, _)| group)
    };
    let mut found = Vec::new();
    for deadlock in tasks["deadlocks"].as_array().expect("deadlocks") {
        let groups: Vec<&str> = deadlock["tasks"].as_array().expect("tasks").iter().map(group).collect();
        assert!(groups.iter().all(|group| *group == groups[0]), "{groups:?} {deadlock}");
        // Beside these, a branch of the holder goes on, or the guard is behind a pointer.
        let unsure = ["around_join", "beside", "inner", "maybe", "unpolled", "weak"];
        assert_eq!(deadlock["certain"], !unsure.contains(&groups[0]), "{groups:?} {deadlock}");
        found.push(groups[0]);
    }
    found.sort_unstable();
    let names = host.expected.iter().filter_map(|task| Some(task.name.split_once('.')?.0));
    let mut expected: Vec<&str> = names.collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(found, expected, "{}", host.text(&["--all"]));
    assert_eq!(expected.len(), 17);
}

/// Each `held.X` holds what `waits.X` waits for, and no other task does.
#[test]
fn holders_of_locks() {
    let host = Host::start(&["holds"]);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let locks = tasks["locks"].as_array().expect("locks");
    let mut unsure = Vec::new();
    for waiter in &host.expected {
        let Some((kind @ ("waits" | "shut"), name)) = waiter.name.split_once('.') else { continue };
        let of_waiter = |lock: &&Value| {
            lock["waiters"].as_array().expect("waiters").iter().any(|id| id.as_u64() == Some(waiter.id))
        };
        let lock = locks.iter().find(of_waiter).expect("the lock of the waiter");
        let holders = lock["holders"].as_array().expect("holders");
        let held = format!("held.{name}");
        let holder = host.expected.iter().find(|task| task.name == held).map(|task| task.id);
        let ids: Vec<Option<u64>> = holders.iter().map(|holder| holder["task"].as_u64()).collect();
        let is_certain = holders.iter().all(|holder| holder["certain"] == true);
        let is_right = match (kind, holder) {
            ("shut", _) => ids.is_empty(),
            // The connection of the server has no name.
            (_, None) => ids.len() == 1,
            _ => ids == [holder],
        };
        if !is_right || !is_certain {
            unsure.push(format!("{}: {lock}", waiter.name));
        }
    }
    assert!(unsure.is_empty(), "{unsure:#?}");
    assert!(host.expected.len() >= 40);
}

/// Each `waits.X` names the task `has.X`, and no other.
#[test]
fn the_other_ends_are_named() {
    let host = Host::start(&["ends"]);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let locks = tasks["locks"].as_array().expect("locks");
    let ids = |list: &Value| -> Vec<u64> {
        list.as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
    };
    let mut unsure = Vec::new();
    for waiter in &host.expected {
        let Some(name) = waiter.name.strip_prefix("waits.") else { continue };
        let own = format!("self.{name}");
        let has = format!("has.{name}");
        let holder = host.expected.iter().find(|task| task.name == has || task.name == own);
        let lock = locks.iter().find(|lock| ids(&lock["waiters"]).contains(&waiter.id));
        let lock = lock.unwrap_or_else(|| panic!("{} waits for nothing: {tasks}", waiter.name));
        let holders = lock["holders"].as_array().expect("holders");
        let found: Vec<u64> = holders.iter().filter_map(|holder| holder["task"].as_u64()).collect();
        let is_certain = holders.iter().all(|holder| holder["certain"] == true);
        if found != [holder.expect("the other task").id] || !is_certain {
            unsure.push(format!("{}: {lock}", waiter.name));
        }
    }
    assert!(unsure.is_empty(), "{unsure:#?} {:#?}", host.text(&["--all"]));
    let barrier = locks.iter().find(|lock| lock["kind"] == "Barrier").expect("a barrier");
    assert_eq!((&barrier["arrived"], &barrier["expected"]), (&2.into(), &3.into()), "{barrier}");
    // A permit that only those have who wait comes never.
    let mut cycles: Vec<Vec<u64>> = Vec::new();
    for deadlock in tasks["deadlocks"].as_array().expect("deadlocks") {
        let mut cycle = ids(&deadlock["tasks"]);
        cycle.sort_unstable();
        cycles.push(cycle);
    }
    let tasks_of = |name: &str| {
        host.expected.iter().filter(|task| task.name == name).map(|task| task.id).collect::<Vec<_>>()
    };
    let permits = tasks_of("self.permits");
    let is_of_permits = |cycle: &Vec<u64>| cycle.iter().all(|id| permits.contains(id));
    assert!(cycles.iter().any(is_of_permits), "{cycles:?} {}", host.text(&["--all"]));
    // An actor that waits for itself is stuck, too.
    let is_stuck = |cycle: &Vec<u64>| is_of_permits(cycle) || *cycle == tasks_of("self.actor");
    assert!(cycles.iter().all(is_stuck), "{cycles:?}");
    assert_eq!(ids(&tasks["without_waker"]), tasks_of("forgotten"), "{tasks}");
    let words = host.text(&["--all"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&format!("nothing can wake task {} (never, ends.rs:", tasks_of("forgotten")[0])),
        "{words}"
    );
    assert!(words.contains("(2 of 3 arrived)"), "{words}");
    assert!(words.contains("whose sender is in task"), "{words}");
    let alone = locks.iter().find(|lock| ids(&lock["waiters"]) == tasks_of("alone")).expect("it waits");
    assert_eq!((&alone["holders"], &alone["ends"]), (&serde_json::json!([]), &0.into()), "{alone}");
    assert!(words.contains(", which nothing else has"), "{words}");
}

/// Each function `waits.X` on a thread names the task `has.X`, and no other. Nobody is named who may have what `open` waits for.
#[test]
fn functions_that_wait_for_channels_name_the_other_ends() {
    let host = Host::start(&["thread-ends"]);
    let ids = |list: &Value| -> Vec<u64> {
        list.as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
    };
    let is_of = |lock: &Value, name: &str| {
        host.expected.iter().any(|task| task.name == name && ids(&lock["waiters"]).contains(&task.id))
    };
    let waiting = ["waits.empty", "waits.shared", "waits.function", "open"];
    // The functions have begun some time after the tasks.
    let end = Instant::now() + Duration::from_secs(60);
    let tasks = loop {
        let tasks = host.tasks();
        let locks = tasks["locks"].as_array().expect("locks");
        if waiting.iter().all(|name| locks.iter().any(|lock| is_of(lock, name))) {
            break tasks;
        }
        assert!(Instant::now() < end, "{tasks}");
    };
    let locks = tasks["locks"].as_array().expect("locks");
    for name in waiting {
        let lock = locks.iter().find(|lock| is_of(lock, name)).expect("it waits");
        assert_eq!(lock["kind"], "empty channel", "{name}: {lock}");
        assert_eq!(ids(&lock["waiters"]).len(), 1, "{name}: {lock}");
        let has = name.strip_prefix("waits.").map(|name| format!("has.{name}"));
        let expected = host.expected.iter().filter(|task| has.as_ref() == Some(&task.name));
        let expected: Vec<u64> = expected.map(|task| task.id).collect();
        let holders = lock["holders"].as_array().expect("holders").iter();
        let found: Vec<u64> = holders.filter_map(|holder| holder["task"].as_u64()).collect();
        assert_eq!(found, expected, "{name}: {lock} {:#?}", host.text(&["--all"]));
    }
}

/// All of these tasks look the same at any two moments.
#[test]
fn tasks_that_nothing_polls_are_told_from_those_that_wait_in_the_same_place_again() {
    let begun = Instant::now();
    let host = Host::start(&["polled"]);
    let tasks: Value =
        serde_json::from_str(&host.text(&["--for", "1s", "--json"])).expect("the output is JSON");
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut unpolled = Vec::new();
    for group in tasks["groups"].as_array().expect("groups") {
        let known = &group["unpolled"];
        if !known.is_null() {
            let time = known["time"].as_u64().expect("a time");
            let longest = begun.elapsed().as_nanos() as u64;
            assert!((1_000_000_000..longest).contains(&time), "{group}");
            unpolled.extend(known["ids"].as_array().expect("ids").iter().filter_map(Value::as_u64));
        }
    }
    unpolled.sort_unstable();
    let rest = host.expected.iter().filter(|task| task.name == "rests").map(|task| task.id);
    assert_eq!(unpolled, rest.collect::<Vec<_>>(), "{tasks}");
    let text = host.text(&["--for", "1s"]);
    let time = text
        .split_once("3 tasks waiting for at least ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    assert!(time.is_some_and(|seconds: f64| (1.0..20.0).contains(&seconds)), "{text}");
}

#[test]
fn tasks_that_wait_for_tasks_name_them() {
    let host = Host::start(&["leaves"]);
    let wrong = host.wrong(&host.tasks());
    let hidden = |line: &&String| line.starts_with("arc:");
    assert!(wrong.iter().all(|line| hidden(&line)) && wrong.len() == 1, "{wrong:#?}");
    let words = host.text(&["--all"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("leaves::BehindArc (not followed: behind an `Arc`)"), "{words}");
    let tasks = |name: &str| {
        host.expected.iter().filter(|task| task.name == name).map(|task| task.id).collect::<Vec<_>>()
    };
    let named = [tasks("sleeper"), tasks("of_set")].concat();
    // The chain of a `timeout` says so, and when it ends.
    let hour = words.find("tokio::time::timeout::Timeout").map(|at| &words[at..]);
    let hour = hour.and_then(|words| words.split("timer fires in ").nth(1)?.split(' ').next()?.parse().ok());
    assert!(hour.is_some_and(|seconds: f64| (3500.0..=3600.0).contains(&seconds)), "{words}");
    assert_eq!(named.len(), 7);
    let words = words + " ";
    for id in named {
        assert!(words.contains(&format!("waits for task {id} ")), "{id}: {words}");
    }
}

/// The limit of a stack of services is on the chain of a request that waits for it, with the request that has the permit.
#[test]
fn requests_wait_for_limits_and_locks_of_their_services() {
    let host = Host::start(&["services"]);
    let tasks = host.tasks();
    let wrong = host.wrong(&tasks);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let ids = |list: &Value| -> Vec<u64> {
        list.as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
    };
    let expected = |name: &str| -> Vec<u64> {
        host.expected.iter().filter(|task| task.name == name).map(|task| task.id).collect()
    };
    let lock_of = |waiters: &[u64]| {
        let locks = tasks["locks"].as_array().expect("locks").iter();
        let mut of_these = locks.filter(|lock| ids(&lock["waiters"]) == waiters);
        let lock = of_these.find(|lock| lock["kind"] != "Notify").unwrap_or_else(|| panic!("{tasks}"));
        let holders = lock["holders"].as_array().expect("holders");
        let holders = holders.iter().filter_map(|holder| holder["task"].as_u64()).collect::<Vec<_>>();
        (lock["kind"].as_str().expect("a kind").to_owned(), holders)
    };
    let semaphore = |holders| ("Semaphore".to_owned(), holders);
    assert_eq!(lock_of(&expected("limited")), semaphore(expected("handled")), "{tasks}");
    // The same in servers, of which one is limited as a whole: their tasks are those of the connections.
    let groups = tasks["groups"].as_array().expect("groups");
    let line = marked_lines()["sv_route"].to_string();
    let is_in_route = |group: &&Value| stack_text(&group["stack"]).contains(&line);
    let in_route: Vec<u64> = groups.iter().filter(is_in_route).flat_map(|group| ids(&group["ids"])).collect();
    assert_eq!(in_route.len(), 2, "{tasks}");
    let mut limited = Vec::new();
    for group in groups {
        let stack = group["stack"].to_string();
        if !stack.contains("handle_connection") {
            continue;
        }
        // All three connections of each server have a request.
        assert!(!stack.contains("no request"), "{group}");
        if stack.contains("ConcurrencyLimit") {
            limited.push(ids(&group["ids"]));
        }
    }
    assert_eq!(limited.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{tasks}");
    let mut of_limits: Vec<u64> = Vec::new();
    for waiters in limited {
        let (kind, holders) = lock_of(&waiters);
        assert_eq!((&*kind, holders.len()), ("Semaphore", 1), "{tasks}");
        of_limits.extend(holders);
    }
    of_limits.sort_unstable();
    let mut in_route = in_route;
    in_route.sort_unstable();
    assert_eq!(of_limits, in_route, "{tasks}");
}

#[test]
fn a_lock_across_an_await_is_named() {
    let host = Host::start(&["hang"]);
    let text = host.text(&[]);
    let lines = marked_lines();
    assert!(text.contains("99 tasks waiting"), "{text}");
    assert!(text.contains(&format!("at hang.rs:{}", lines["fetch"])), "{text}");
    assert!(text.contains(&format!("hang.rs:{}", lines["lock"])), "{text}");
    assert!(text.contains(", held by task ") && !text.contains("probably"), "{text}");
    let tree = host.text(&["--tree"]);
    assert!(tree.contains(&format!("hang.rs:{}", lines["lock"])), "{tree}");
}

#[test]
fn tasks_that_never_rest_have_possible_stacks() {
    let host = Host::start(&["busy", "4"]);
    let lines = marked_lines();
    let line = |name: &str| lines[name].to_string();
    let possible = [
        format!("{}>{}>!", line("busy_left"), line("left")),
        format!("{}>{}>{}>!", line("busy_right"), line("right"), line("deep")),
    ];
    let begin = Instant::now();
    let (mut seen, mut impossible) = (0, Vec::new());
    while begin.elapsed() < Duration::from_secs(5) || seen == 0 {
        let tasks = host.tasks();
        for group in tasks["groups"].as_array().expect("groups") {
            if matches!(group["state"].as_str(), Some("waiting" | "ready")) {
                seen += 1;
                let stack = stack_text(&group["stack"]);
                if !possible.iter().any(|possible| stack.starts_with(possible)) {
                    impossible.push(stack);
                }
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no task rests");
    }
    assert!(impossible.is_empty(), "{} of {seen}: {:?}", impossible.len(), impossible[0]);
}

/// Reads so many times, and then once for each wait: the program is killed so many ms after a reading begins.
fn come_and_go(readings: u32, waits: &[u64]) {
    let mut host = Host::start(&["churn"]);
    let line = marked_lines()["churn"].to_string();
    for _ in 0..readings {
        let tasks = host.tasks();
        for group in tasks["groups"].as_array().expect("groups") {
            let stack = stack_text(&group["stack"]);
            let is_possible = stack.is_empty()
                || stack.starts_with(&line)
                || stack.starts_with(&marked_lines()["left"].to_string())
                || stack.contains("not started")
                || group["state"] == "block_on";
            assert!(is_possible, "{group}");
        }
    }
    for &wait in waits {
        let mut command = Command::new(stackglass());
        command.args(["tasks", "--json"]).arg(host.pid());
        let command =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        std::thread::sleep(Duration::from_millis(wait));
        let _ = host.child.kill();
        let output = command.wait_with_output().expect("the command ends");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 125)), "{text}");
        assert!(text.lines().count() <= 1 && !text.contains("panicked"), "{text}");
        drop(std::mem::replace(&mut host, Host::start(&["churn"])));
    }
}

#[test]
fn tasks_that_come_and_go() {
    come_and_go(2, &[0, 20, 150]);
}

#[test]
#[ignore = "long: five readings, five kills"]
fn tasks_that_come_and_go_again_and_again() {
    come_and_go(5, &[0, 5, 20, 60, 150]);
}

#[test]
fn programs_without_tasks_are_told_apart() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let pid = child.id().to_string();
    let output = Command::new(stackglass()).args(["tasks", &pid]).output().expect("the command starts");
    let _ = child.kill();
    let _ = child.wait();
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{line}");
    assert!(line.contains("no debug information of Rust"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let gone = Command::new(stackglass()).args(["tasks", &pid]).output().expect("the command starts");
    assert_eq!(gone.status.code(), Some(125));
}

/// Reads of tasks that never rest, by the types of one process that are read once: 10^6 of many tasks, and 20 000 of four, which
/// are more moments. `STACKGLASS_READS` sets the number for four.
#[test]
#[ignore = "long: a million reads"]
fn a_million_reads_of_tasks_that_never_rest() {
    let of_four =
        std::env::var("STACKGLASS_READS").ok().and_then(|reads| reads.parse().ok()).unwrap_or(20_000);
    for (tasks, reads) in [("4", of_four), ("400", 1_000_000u64)] {
        let host = Host::start(&["busy", tasks]);
        let lines = marked_lines();
        let line = |name: &str| lines[name].to_string();
        let possible = [
            format!("{}>{}>!", line("busy_left"), line("left")),
            format!("{}>{}>{}>!", line("busy_right"), line("right"), line("deep")),
        ];
        let mut live = stackglass_inspect::tasks::LiveTasks::new(host.child.id());
        let (mut seen, mut looks) = (0, 0u64);
        let mut found: HashMap<Vec<AwaitFrame>, u64> = HashMap::new();
        while seen < reads {
            let (dump, _) = live.read().expect("the process can be read");
            looks += 1;
            for task in dump.tasks.into_iter().filter(|task| !task.stack.is_empty()) {
                seen += 1;
                *found.entry(task.stack).or_default() += 1;
            }
        }
        let text = |frames: &[AwaitFrame]| {
            let mut out = Vec::new();
            let mut now = frames;
            while let [frame] = now {
                out.push(match &frame.point {
                    AwaitPoint::Await(Some((file, line))) if file.contains("tests/awaits/src/") => {
                        line.to_string()
                    }
                    AwaitPoint::Await(Some(_)) => "library".to_owned(),
                    AwaitPoint::Leaf => format!("!{}", frame.function),
                    point => format!("?{point:?}"),
                });
                now = &frame.children;
            }
            out.retain(|part| part != "library");
            out.join(">")
        };
        let mut impossible = Vec::new();
        for (stack, count) in &found {
            let text = text(stack);
            if !possible.iter().any(|possible| text.starts_with(possible)) {
                impossible.push(format!("{count} × {text}"));
            }
        }
        println!("{seen} reads of {tasks} tasks in {looks} looks, {} stacks", found.len());
        assert!(found.len() >= 2, "the tasks do not alternate");
        assert!(impossible.is_empty(), "{impossible:?}");
    }
}
