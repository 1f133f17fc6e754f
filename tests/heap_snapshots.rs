//! Heap snapshots of a program whose heap is known: every block with its type, what holds it, and every leak.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use whole_programs::{Folder, Language, host, host_with, stackglass, workloads};

/// A program, ready, by itself or as a child of `stackglass`.
struct Ready {
    started: Child,
    /// The program's process id.
    pid: u32,
    folder: Folder,
}

impl Ready {
    /// The workload `live-graph` with 1000 items.
    fn live_graph(before: &[&str]) -> Ready {
        Ready::start(before, workloads(), &["live-graph", "--work", "1000", "--seconds", "60"])
    }

    fn start(before: &[&str], program: &Path, arguments: &[&str]) -> Ready {
        let folder = Folder::new();
        let mut words: Vec<&std::ffi::OsStr> = Vec::new();
        if !before.is_empty() {
            words.push(stackglass().as_os_str());
            words.extend(before.iter().map(std::ffi::OsStr::new));
        }
        words.push(program.as_os_str());
        let mut started = Command::new(words[0])
            .args(&words[1..])
            .args(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(started.stderr.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "the workload gets ready");
        let child = || {
            let id = started.id();
            let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
            children.split_ascii_whitespace().next().unwrap().parse().unwrap()
        };
        let pid = if before.is_empty() { started.id() } else { child() };
        Ready { started, pid, folder }
    }

    /// The line that `heap take` prints, and the file.
    fn take(&self, flags: &[&str]) -> (String, std::path::PathBuf) {
        let file = self.folder.path().join("taken.heapsnapshot");
        let taken = Command::new(stackglass())
            .args(["heap", "take", &self.pid.to_string(), "-o"])
            .arg(&file)
            .args(flags)
            .output()
            .unwrap();
        let line = String::from_utf8(taken.stderr).unwrap();
        assert!(taken.status.success(), "{line}");
        (line, file)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // The launcher passes SIGTERM on.
        let _ = Command::new("kill").arg(self.pid.to_string()).status();
        let _ = self.started.wait();
    }
}

/// Arguments of `stackglass` before the program whose allocations are recorded.
const RECORDED: [&str; 3] = ["run", "--allocs", "--"];

fn shown(file: &Path) -> Value {
    let shown = Command::new(stackglass()).args(["heap", "show", "--json"]).arg(file).output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    serde_json::from_slice(&shown.stdout).unwrap()
}

fn count(shown: &Value, list: &Value, name: &str) -> (u64, u64) {
    let types = list.as_array().unwrap_or_else(|| panic!("{shown}"));
    let row = types.iter().find(|row| row["type"] == name);
    let number = |key: &str| row.and_then(|row| row[key].as_u64()).unwrap_or(0);
    (number("count"), number("self_size"))
}

#[test]
fn every_block_of_a_known_heap() {
    let program = Ready::live_graph(&RECORDED);
    let (line, file) = program.take(&[]);
    let pause = line.contains("; paused for ") || line.contains("; not paused");
    assert!(line.contains("blocks") && pause, "{line}");
    let shown = shown(&file);
    let of = |name: &str| count(&shown, &shown["types"], name);
    assert_eq!(of("ListNode"), (1000, 16 * 1000));
    assert_eq!(of("TreeNode"), (1000, 48 * 1000));
    assert_eq!(of("[u16]"), (1000, 6 * 1000));
    assert_eq!(of("App").0, 1);
    assert_eq!(of("Rc<String>"), (1, 40));
    assert_eq!(of("HashMap<u64, Vec<u16>> table").0, 1);
    // All pairs that hold each other are leaked, with a payload each, and nothing else is.
    let unreachable = &shown["unreachable"];
    let leaked = |name: &str| count(&shown, &unreachable["types"], name).0;
    assert_eq!(
        (leaked("Rc<Member>"), leaked("[u32; 4]"), leaked("[u32; 1]")),
        (200, 100, 100),
        "{unreachable}"
    );
    assert_eq!(unreachable["count"].as_u64(), Some(400), "{unreachable}");
}

/// The C library's own structures have the same blocks.
#[test]
fn an_unprepared_program_has_the_same_blocks() {
    let program = Ready::live_graph(&[]);
    let (_, file) = program.take(&[]);
    let unprepared = shown(&file);
    let prepared = Ready::live_graph(&RECORDED);
    let (_, file) = prepared.take(&[]);
    let prepared = shown(&file);
    let nodes = |shown: &Value| shown["nodes"].as_u64().unwrap();
    // The library and the loader have some blocks of their own.
    assert!(nodes(&unprepared).abs_diff(nodes(&prepared)) < 100, "{unprepared} {prepared}");
}

/// Blocks of `new` and `malloc` have the same types with the recorder, which knows their sites only, and without it. The names are
/// those of C++.
#[test]
fn types_of_cpp_are_the_same_with_the_recorder() {
    let program = host_with("typed", Language::Cpp, &["-g"]);
    let types = |before: &[&str]| {
        let started = Ready::start(before, &program, &[]);
        let (_, file) = started.take(&[]);
        shown(&file)
    };
    let mut with_sites = 0;
    for shown in [types(&[]), types(&RECORDED)] {
        let lost = |name: &str| count(&shown, &shown["unreachable"]["types"], name).0;
        // A word of a register or of the stack may still hold what was lost last.
        let of = |name: &str| count(&shown, &shown["types"], name).0 + lost(name);
        let found = [
            of("Circle"),
            of("Path"),
            of("unsigned long[]"),
            of("Part").min(100),
            of("map<int, shared_ptr<Text>> node"),
            of("shared_ptr<Text>"),
            of("char[]").min(100),
            of("Shape*[]"),
        ];
        assert_eq!(found, [60, 50, 50, 100, 100, 100, 100, 1], "{shown}");
        assert!(lost("Circle") >= 9, "{shown}");
        // Integers with tagged addresses of them may be pointers.
        assert!(shown["unreachable"]["only_weak"]["count"].as_u64() >= Some(10), "{}", shown["unreachable"]);
        let owners = shown["unreachable"]["owners"].as_array().unwrap();
        let circles = owners.iter().find(|row| row["type"] == "Circle").unwrap();
        let sites = circles["sites"].as_array().unwrap();
        if let [site] = &sites[..] {
            let name = site["site"].as_str().unwrap();
            assert!(name.starts_with("lose_circles (typed.cpp:"), "{shown}");
            assert_eq!(site["count"].as_u64(), Some(lost("Circle")), "{shown}");
            with_sites += 1;
        }
    }
    assert_eq!(with_sites, 1, "only the recorder knows sites");
}

/// Without debug information, blocks have no type. Their rows give their size, and the vtable or text with which they begin.
#[test]
fn blocks_without_types_are_told_by_what_they_begin_with() {
    let program = Ready::start(&[], &host_with("typed", Language::Cpp, &["-g0"]), &[]);
    let (_, file) = program.take(&[]);
    let shown = shown(&file);
    let of = |name: &str| {
        count(&shown, &shown["types"], name).0 + count(&shown, &shown["unreachable"]["types"], name).0
    };
    let circles = "(unknown), 49–56 B, begins with &vtable for Circle";
    let paths = "(unknown), 33–40 B, begins with &vtable for Path";
    let texts = "(unknown), 81–88 B, begins with text";
    assert_eq!([of(circles), of(paths), of(texts)], [60, 50, 16], "{shown}");
}

/// The old block is in the recorder's table no more, and the new one not yet. The program does hardly anything else.
#[test]
fn a_block_that_is_being_reallocated_holds_its_items() {
    let program = Ready::start(&RECORDED, &host("moving", Language::C), &[]);
    for _ in 0..3 {
        let (line, file) = program.take(&[]);
        let shown = shown(&file);
        assert_eq!(shown["unreachable"]["count"], 0, "{line} {}", shown["unreachable"]);
        let counts = shown["types"].as_array().unwrap().iter().filter_map(|row| row["count"].as_u64());
        assert_eq!(counts.sum::<u64>(), 1001, "{shown}");
    }
}

/// Small blocks that are free are in no list while the allocator joins them.
#[test]
fn blocks_are_no_leaks_while_the_allocator_joins_them() {
    let program = Ready::start(&[], &host("churn", Language::C), &[]);
    for _ in 0..8 {
        let (line, file) = program.take(&[]);
        let unreachable = &shown(&file)["unreachable"];
        assert!(
            unreachable["lost"]["count"] == 0 || line.contains("inside malloc or free"),
            "{line} {unreachable}"
        );
    }
}

/// What may be an address is in doubt: one with a tag, an unaligned one, and the end of an array. Of the bytes in the buffer, some are
/// aligned: they are pointers if nothing is known of them. Memory holds its blocks also if it cannot be written any more.
#[test]
fn disguised_addresses_and_read_only_memory_lead_to_blocks() {
    for before in [&[][..], &RECORDED] {
        let program = Ready::start(before, &host_with("tagged", Language::C, &["-g0"]), &[]);
        let (line, file) = program.take(&[]);
        let unreachable = &shown(&file)["unreachable"];
        let counts = [&unreachable["lost"]["count"], &unreachable["only_weak"]["count"]].map(Value::as_u64);
        let aligned = 100 / 8 + 1 + 100 / 8;
        assert_eq!(counts, [Some(5), Some(5 * 100 + 1 - aligned)], "{line} {unreachable}");
    }
}

/// Memory of all kinds holds blocks, also what a copy of the process lacks, and what nobody may read now. What another process may have
/// written is in doubt.
#[test]
fn all_memory_that_the_program_has_written_holds_blocks() {
    for before in [&[][..], &RECORDED] {
        let program = Ready::start(before, &host("mapped", Language::C), &[]);
        let (line, file) = program.take(&[]);
        let unreachable = &shown(&file)["unreachable"];
        let counts =
            [&unreachable["lost"], &unreachable["only_weak"]].map(|sum| sum["count"].as_u64().unwrap());
        assert_eq!(counts, [7, 10], "{line} {unreachable}");
        assert_eq!(unreachable["unread_mappings"], 0, "{line} {unreachable}");
    }
}

/// A thread that sleeps, and has no registers of its own: the frame that has saved the register is below.
#[test]
fn a_variable_in_a_register_holds_its_items() {
    let program = Ready::start(&[], &host_with("saved_registers", Language::C, &[]), &[]);
    let (_, file) = program.take(&[]);
    let shown = shown(&file);
    assert_eq!(count(&shown, &shown["types"], "item").0, 2, "{shown}");
    assert_eq!(shown["unreachable"]["count"].as_u64(), Some(0), "{shown}");
    let largest = shown["largest"].as_array().unwrap();
    let items = largest.iter().find(|row| row["type"] == "item").unwrap_or_else(|| panic!("{shown}"));
    let path: Vec<&str> = items["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(path[1].starts_with("keeps (saved_registers.c:"), "{path:?}");
    assert_eq!(path[2], ".kept", "{path:?}");
}

/// The kernel does not tell the registers of a thread that sleeps, so what only they hold counts as leaked. It is said, and how to read
/// them. Snapshots with and without recorded allocations are compared with a warning.
#[test]
fn registers_that_were_not_read_are_told() {
    let host = host("in_register", Language::C);
    let program = Ready::start(&[], &host, &[]);
    let says = |line: &str| line.contains("one thread was left alone in a system call");
    let lost = |shown: &Value| {
        let unreachable = &shown["unreachable"];
        (unreachable["lost"]["count"].as_u64(), unreachable["unread_threads"].as_u64())
    };
    let (line, file) = program.take(&[]);
    assert_eq!(lost(&shown(&file)), (Some(10), Some(1)), "{line}");
    assert!(says(&line), "{line}");
    let text = Command::new(stackglass()).args(["heap", "show"]).arg(&file).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("1 thread slept in a system call with registers that were not read"), "{text}");

    let prepared = Ready::start(&RECORDED, &host, &[]);
    let (_, recorded) = prepared.take(&[]);
    let compared =
        Command::new(stackglass()).args(["heap", "diff"]).args([&file, &recorded]).output().unwrap();
    let said = String::from_utf8(compared.stderr).unwrap();
    assert!(said.contains("has recorded allocations, ") && said.contains(" has not"), "{said}");
    let same = Command::new(stackglass()).args(["heap", "diff"]).args([&file, &file]).output().unwrap();
    assert_eq!(String::from_utf8(same.stderr).unwrap(), "");

    let (line, file) = program.take(&["--interrupt-calls"]);
    assert_eq!(lost(&shown(&file)), (Some(0), Some(0)), "{line}");
    assert!(!says(&line), "{line}");
}

/// Freed blocks are known by the thread's structure, which may lie in a large mapping.
#[test]
fn blocks_in_the_cache_of_a_sleeping_thread_are_free() {
    let program = Ready::start(&[], &host_with("cached", Language::C, &[]), &[]);
    let (_, file) = program.take(&[]);
    let shown = shown(&file);
    let types = shown["types"].as_array().unwrap();
    let count: u64 = types.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!((count, shown["unreachable"]["count"].as_u64()), (3, Some(0)), "{shown}");
}

/// Wakers hold values without a size. Words of no known type hold nothing that has an owner.
#[test]
fn what_is_held_in_unusual_ways() {
    let program = host_with("holders", Language::Rust, &["-Cdebuginfo=2"]);
    let program = Ready::start(&RECORDED, &program, &[]);
    let (_, file) = program.take(&[]);
    let shown = shown(&file);
    let held = |name: &str| count(&shown, &shown["types"], name).0;
    let lost = |name: &str| count(&shown, &shown["unreachable"]["types"], name).0;
    assert_eq!((held("Arc<Nothing>"), lost("Arc<Nothing>")), (20, 7), "{shown}");
    assert_eq!((held("Leaf"), lost("Leaf"), lost("Holder")), (0, 10, 10), "{shown}");
    assert_eq!(shown["unreachable"]["count"].as_u64(), Some(27), "{shown}");
}

/// What three copies say of the program `growing`.
fn watched(flags: &[&str]) -> Value {
    let program = Ready::start(&[], &host_with("growing", Language::C, flags), &[]);
    let watch = ["heap", "watch", &program.pid.to_string(), "--every", "300ms", "--copies", "3", "--json"];
    let watched = Command::new(stackglass()).args(watch).output().unwrap();
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    let watched: Value = serde_json::from_slice(&watched.stdout).unwrap();
    assert_eq!(watched["end"], "copies");
    assert_eq!(watched["compared"].as_array().unwrap().len(), 3, "{watched}");
    watched
}

/// Type, sizes and path of each likely leak, and how many blocks more there are.
fn leaks(watched: &Value) -> Vec<(String, u64, String, u64)> {
    let rows = watched["types"].as_array().unwrap().iter().filter(|row| row["likely_leak"] == true);
    let leak = |row: &Value| {
        let path: Vec<&str> = row["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let counts = row["count"].as_array().unwrap();
        let number = |at: Option<&Value>| at.and_then(Value::as_u64).unwrap();
        let more = number(counts.last()) - number(counts.first());
        let most = row["sizes"][1].as_u64().unwrap_or(0);
        (row["type"].as_str().unwrap().to_owned(), most, path.join(" → "), more)
    };
    rows.map(leak).collect()
}

/// A list that a variable holds and blocks that nothing holds leak. A table that grows once, a ring of jobs, and what is freed
/// again do not.
fn check_leaks(flags: &[&str], expected: [(&str, u64, &str); 3]) {
    let watched = watched(flags);
    let leaks = leaks(&watched);
    let named: Vec<_> =
        leaks.iter().map(|(name, most, path, _)| (name.as_str(), *most, path.as_str())).collect();
    assert_eq!(named, expected, "{watched}");
    // Each round leaks as many of each kind. A word of a register or of the stack may hold what was lost last.
    let counts: Vec<u64> = leaks.iter().map(|leak| leak.3).collect();
    assert!(counts[1] > 100 && counts.iter().all(|count| count.abs_diff(counts[1]) <= 3), "{watched}");
    let table = watched["types"].as_array().unwrap().iter().find(|row| row["type"] == "long[]");
    assert!(table.is_none_or(|row| row["steps"] == 1), "{watched}");
}

#[test]
fn leaks_of_a_running_program_are_told_with_what_holds_them() {
    let list = "(static data) growing → sessions → session";
    let user = format!("{list} → .user");
    let lost = ("(unknown)", 256, "(unreachable blocks) → (unknown)");
    check_leaks(&[], [lost, ("session", 0, list), ("(unknown)", 40, &user)]);
}

#[test]
fn leaks_without_debug_information_are_told_by_size_and_variable() {
    let list = "(static data) growing → sessions → (unknown)";
    let lost = ("(unknown)", 256, "(unreachable blocks) → (unknown)");
    let user = format!("{list} → […]");
    check_leaks(&["-g0"], [lost, ("(unknown)", 104, list), ("(unknown)", 40, &user)]);
}
