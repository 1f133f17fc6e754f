//! Reports on a heap graph with known content: as text, as it looks, and as JSON.
//!
//! Goldens lie in `tests/goldens`; `STACKGLASS_BLESS=1` writes them anew, to be reviewed by eye.

use crate::goldens::check;
use crate::maker::{Maker, ROOT};
use stackglass_heap_report::answers::HeapAnswers;
use stackglass_heap_report::answers::growth::{HeapSums, growth};
use stackglass_heap_report::{HeapText, reports as heap};
use stackglass_profile::heap_graph::{EdgeKind, HeapGraph, NodeKind, UNREACHABLE};
use stackglass_report::Style;
use std::io;

/// A cache of `sessions` in a static, a list of jobs on a stack, and a leaked cycle for each thousand sessions.
pub fn server(sessions: u32, with_texts: bool) -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let server = heap.root(statics, "server");
    let cache = heap.root(server, "server::CACHE");
    let table = heap.node(NodeKind::Array, "HashMap<u64, Session> table", u64::from(sessions) * 48);
    heap.field(cache, table, "map");
    let name_type = if with_texts { "" } else { "String" };
    for index in 0..sessions {
        let text = match with_texts {
            true => format!("visit {}", index % 4),
            false => name_type.to_owned(),
        };
        let name = heap.node(NodeKind::String, &text, 16);
        heap.field(table, name, &format!("[{index}].value.name"));
        let events = heap.node(NodeKind::Array, "[Event]", 256);
        heap.nodes[events as usize].3 = 192;
        heap.field(table, events, &format!("[{index}].value.events"));
    }
    let stacks = heap.root(ROOT, "(thread stacks)");
    let thread = heap.root(stacks, "main 4711");
    let frame = heap.root(thread, "server::run");
    let mut job = heap.object(frame, "jobs", "Job", 64);
    for _ in 1..500 {
        job = heap.object(job, "next", "Job", 64);
    }
    let config = heap.object(job, "config", "Config<'_, \u{1b}[2J>", 40);
    heap.edges.push((config, table, EdgeKind::Weak, Err("cache".to_owned())));
    let unreachable = heap.root(ROOT, UNREACHABLE);
    for index in 0..sessions / 1000 {
        let (parent, child) = (heap.nodes.len() as u32, heap.nodes.len() as u32 + 1);
        heap.node(NodeKind::Object, "RcInner<Parent>", 56);
        heap.allocated_by(parent, "server::pair", 40 + index % 2);
        heap.node(NodeKind::Object, "RcInner<Child>", 40);
        heap.element(unreachable, parent, index);
        heap.field(parent, child, "value.child");
        heap.field(child, parent, "value.parent");
        let buffer = heap.node(NodeKind::Native, "site: server::read (server.rs:71)", 4096);
        heap.field(child, buffer, "value.buffer");
    }
    let lost = heap.node(NodeKind::Native, "site: server::forget (server.rs:90)", 100);
    heap.element(unreachable, lost, sessions / 1000);
    heap.graph()
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_snapshot_at_80_columns() {
    let graph = server(3000, true);
    let answers = HeapAnswers::new(&graph);
    let text = written(|out| HeapText::new("server.heapsnapshot").show(&answers, out));
    check("heap-show-80.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let redacted = server(3000, false);
    let text = written(|out| HeapText::new("server.heapsnapshot").show(&HeapAnswers::new(&redacted), out));
    assert!(text.contains("no texts of strings"), "{text}");
    assert!(!text.contains("copies"), "{text}");
}

#[test]
fn no_width_is_exceeded_and_colours_change_nothing() {
    let graph = server(2000, true);
    let answers = HeapAnswers::new(&graph);
    let escapes = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for cols in (60..130).step_by(7) {
        let text = |style| HeapText::new("a-long-name-of-a-snapshot.heapsnapshot").cols(cols).style(style);
        let show = |style| written(|out| text(style).everything(true).show(&answers, out));
        let plain = show(Style::Plain);
        for line in plain.lines() {
            assert!(line.chars().count() <= cols, "{cols}: {line}");
        }
        assert_eq!(escapes.replace_all(&show(Style::Ansi), ""), plain);
        for name in ["Job", "[Event]", "RcInner<Child>"] {
            let answer = answers.type_answer(name, 3).unwrap();
            let one = |style| written(|out| text(style).one_type(&answer, out));
            let plain = one(Style::Plain);
            assert!(plain.lines().all(|line| line.chars().count() <= cols), "{cols}: {plain}");
            assert_eq!(escapes.replace_all(&one(Style::Ansi), ""), plain);
        }
    }
}

#[test]
fn one_type() {
    let graph = server(3000, true);
    let answers = HeapAnswers::new(&graph);
    let text = |name: &str| {
        let answer = answers.type_answer(name, 3).unwrap();
        written(|out| HeapText::new("server.heapsnapshot").one_type(&answer, out))
    };
    check("heap-type-80.txt", &["Job", "[Event]", "RcInner<Child>"].map(text).join("\n"));
    let named = |text| answers.types_named(text).into_iter().map(|found| found.name).collect::<Vec<_>>();
    assert_eq!(named("RcInner"), ["RcInner<Parent>", "RcInner<Child>"]);
    assert_eq!(named("Job"), ["Job"]);
    // The block of a shared value stands for the value, but not for a type that contains it.
    assert_eq!(named("Child"), ["RcInner<Child>"]);
    assert_eq!(named("Event"), ["[Event]"]);
    assert_eq!(named("Sess"), ["HashMap<u64, Session> table"]);
    let path = answers.type_answer("Config<'_, \u{1b}[2J>", 1).unwrap().paths.remove(0);
    assert_eq!(
        path.text(),
        "(thread stacks) main 4711 → server::run → .jobs → .next × 499 → .config → Config<'_, \u{1b}[2J>"
    );
}

/// Two variables with several blocks of their own, one of a static and one of a frame; blocks that roots share; many that are
/// alike.
fn variables() -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    // A tree whose variable points to its first and last node as well. Nodes point to their parents.
    let users = heap.root(app, "users");
    let parent = heap.object(users, "parent", "_Rb_tree_node<User>", 500);
    for field in ["leftmost", "rightmost"] {
        let node = heap.object(users, field, "_Rb_tree_node<User>", 300);
        heap.field(node, parent, "parent");
        heap.field(parent, node, field);
    }
    let shared = heap.object(users, "shared", "Settings", 700);
    let other = heap.root(app, "(other data)");
    for index in 0..40 {
        let word = heap.node(NodeKind::Native, "(unknown)", 50);
        heap.element(other, word, index);
    }
    let stacks = heap.root(ROOT, "(thread stacks)");
    let thread = heap.root(stacks, "thread 1 app");
    let frame = heap.root(thread, "app::run (main.rs:9)");
    heap.field(frame, shared, "settings");
    // Two chunks of a queue; what both hold belongs to the queue, and what a word holds as well does not.
    let chunks = [0, 1].map(|index| heap.object(frame, &format!("queue.chunks[{index}]"), "[Job]", 400));
    let name = heap.object(chunks[0], "name", "Name", 30);
    heap.field(chunks[1], name, "name");
    let seen = heap.object(chunks[1], "seen", "Seen", 20);
    heap.element(frame, seen, 3);
    heap.object(frame, "list.head", "Node", 10);
    heap.graph()
}

#[test]
fn a_variable_with_several_blocks_is_one_holder() {
    let graph = variables();
    let answers = HeapAnswers::new(&graph);
    let all = answers.largest(10);
    let rows: Vec<_> = all
        .iter()
        .map(|row| (row.name.as_str(), row.is_variable, row.alike, row.count, row.retained_size))
        .collect();
    let expected = [
        ("(unknown), 49–56 B", false, 40, 40, 2000),
        ("users", true, 1, 3, 1100),
        ("queue", true, 1, 3, 830),
        ("Settings", false, 1, 1, 700),
        ("Seen", false, 1, 1, 20),
        ("Node", false, 1, 1, 10),
    ];
    assert_eq!(rows, expected);
    assert_eq!(all[1].path.text(), "(static data) app → users");
    assert_eq!(all[2].path.text(), "(thread stacks) thread 1 app → app::run (main.rs:9) → queue");
    let roots = answers.roots();
    let groups = roots.groups.iter().map(|(name, size)| (name.as_str(), *size)).collect::<Vec<_>>();
    assert_eq!(groups, [("(static data)", 3100), ("(thread stacks)", 860)]);
    assert_eq!((roots.shared, roots.others), (700, 0));
    let text = written(|out| HeapText::new("app").show(&answers, out));
    let line = "held by   3.10 kB static data, 860 B thread stacks, 700 B two or more of them\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("2.00 kB     40  40 × (unknown), 49–56 B\n"), "{text}");
}

/// Steps beside numbers are short, whatever the types are. None is left out.
#[test]
fn long_steps_are_shortened() {
    let mut heap = Maker::new();
    let stacks = heap.root(ROOT, "(thread stacks)");
    let thread = heap.root(stacks, "thread 4711 tokio-rt-worker");
    let mut at = heap.root(thread, "server::connection::handle::{closure#0} (connection.rs:1171)");
    for index in 0..12 {
        let field = format!("field_{index}<std::collections::HashMap<String, Vec<Session<Alloc>>>>");
        at = heap.object(at, &field, &format!("Step{index}"), if index == 11 { 100 } else { 0 });
    }
    let graph = heap.graph();
    let answers = HeapAnswers::new(&graph);
    let text = written(|out| HeapText::new("app").show(&answers, out));
    let (_, holders) = text.split_once("Largest holders\n").unwrap();
    let (rows, _) = holders.split_once("\n\n").unwrap();
    assert!(rows.contains("… (connection.rs:1171)"), "{text}");
    let path: Vec<&str> = rows.lines().skip(2).collect();
    assert!((0..12).all(|index| rows.contains(&format!(".field_{index}<"))), "{text}");
    assert!(path.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(path[0].starts_with("                 (thread stacks) thread 4711 tokio-rt-worker"), "{text}");
    let answer = answers.type_answer("Step11", 3).unwrap();
    let whole = written(|out| HeapText::new("app").path(&answer, out));
    assert!(whole.contains("handle::{closure#0} (connection.rs:1171)"), "{whole}");
}

/// A runtime's variable is nearer than the program's, which says more.
#[test]
fn paths_begin_at_variables_of_the_program() {
    for library in ["tokio::runtime::context::CONTEXT", "<std::thread::Packet as Drop>::drop (mod.rs:1)"] {
        let mut heap = Maker::new();
        let locals = heap.root(ROOT, "(thread locals)");
        let near = heap.root(locals, library);
        let shared = heap.object(near, "scheduler", "Session", 100);
        heap.object(near, "core", "Worker", 10);
        let statics = heap.root(ROOT, "(static data)");
        let app = heap.root(statics, "app");
        let cache = heap.root(app, "app::CACHE");
        let table = heap.object(cache, "map", "Table", 1000);
        heap.field(table, shared, "[3].value");
        let graph = heap.graph();
        let answers = HeapAnswers::new(&graph);
        let nearest = |name: &str| answers.type_answer(name, 1).unwrap().paths[0].text();
        assert_eq!(nearest("Session"), "(static data) app → app::CACHE → .map → [3].value → Session");
        assert_eq!(nearest("Worker"), format!("(thread locals) {library} → .core → Worker"));
        assert!(answers.is_alive(shared as usize));
    }
}

#[test]
fn unknown_types_come_with_advice() {
    for (unknown, advised) in [(49, false), (51, true)] {
        let mut heap = Maker::new();
        let statics = heap.root(ROOT, "(static data)");
        heap.object(statics, "a", "Known", 100 - unknown);
        heap.object(statics, "b", "(unknown)", unknown);
        let graph = heap.graph();
        let text = written(|out| HeapText::new("app").show(&HeapAnswers::new(&graph), out));
        assert_eq!(text.contains("note: 51 % of bytes have no type: "), advised, "{text}");
        assert_eq!(text.contains("`stackglass run --allocs`"), advised, "{text}");
    }
}

/// V8 names strings that it has not put together yet by their kind.
#[test]
fn placeholders_are_no_texts() {
    let mut heap = Maker::new();
    for name in ["(concatenated string)", "(concatenated string)", "twice", "twice"] {
        let string = heap.node(NodeKind::String, name, 16);
        heap.field(ROOT, string, "text");
    }
    let mut graph = heap.graph();
    let concatenated = graph.node_kinds.iter().position(|kind| kind == "concatenated string").unwrap();
    graph.kinds[1..3].fill(concatenated as u16);
    let duplicates = HeapAnswers::new(&graph).waste().duplicates.unwrap();
    let texts: Vec<_> = duplicates.strings.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, ["twice"]);
}

/// Leaks of one kind are one row with their number.
#[test]
fn blocks_that_are_alike_are_one_row() {
    let graph = server(60_000, false);
    let answers = HeapAnswers::new(&graph);
    let answer = answers.type_answer("RcInner<Parent>", 5).unwrap();
    assert_eq!(answer.largest.len(), 1);
    let text = written(|out| HeapText::new("").one_type(&answer, out));
    assert!(text.contains("  252 kB    180  60 × (unreachable blocks) → RcInner<Parent>\n"), "{text}");
}

/// Fields that hold a type are shown with the shortest path to each, unless it leads through another block of the type.
#[test]
fn paths_by_what_holds_a_type() {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    let sessions: Vec<u32> = (0..6).map(|_| heap.node(NodeKind::Object, "Session", 64)).collect();
    let user = heap.node(NodeKind::Object, "User", 32);
    for (index, name) in ["A", "B", "C", "D"].iter().enumerate() {
        let variable = heap.root(app, name);
        heap.field(variable, sessions[index], "session");
        heap.field(variable, sessions[4], "session");
    }
    heap.field(sessions[0], sessions[5], "next");
    heap.field(sessions[0], user, "user");
    heap.field(user, sessions[5], "session");
    let graph = heap.graph();
    let answers = HeapAnswers::new(&graph);
    let answer = answers.type_answer("Session", 1).unwrap();
    let shown = written(|out| HeapText::new("").path(&answer, out));
    let path =
        |title: &str, name: &str| format!("{title:<10}(static data) app → {name} → .session → Session\n");
    let three = [path("nearest", "A"), path("also by", "B"), path("also by", "C")].concat();
    assert_eq!(shown, format!("{three}1 more path: --all shows them\n"));
    let all = written(|out| HeapText::new("").everything(true).path(&answer, out));
    assert_eq!(all, format!("{three}{}", path("also by", "D")));
}

#[test]
fn growth_of_two_and_three() {
    let sums = [2000, 3000, 4500].map(|sessions| HeapSums::new(&server(sessions, false)));
    let names = ["monday.heapsnapshot", "tuesday.heapsnapshot", "wednesday.heapsnapshot"].map(str::to_owned);
    let text = |count: usize| {
        let rows = growth(&sums[..count]);
        let text = HeapText::new("");
        written(|out| text.growth(&names[..count], &sums[..count], &rows, out))
    };
    check("heap-diff-80.txt", &format!("{}\n{}", text(2), text(3)));
    let shrunk = [&sums[2], &sums[0]].map(Clone::clone);
    assert_eq!(growth(&shrunk).len(), growth(&[sums[0].clone(), sums[2].clone()]).len());
    assert!(growth(&[sums[0].clone(), sums[1].clone(), sums[0].clone()]).is_empty());
}

/// The parts between ```json and the next ``` behind the heading on heap snapshots.
fn documented() -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("## `stackglass heap").expect("a heading on heap snapshots");
    // That of `heap watch` is compared in `heap_watch.rs`.
    let (rest, _) = rest.split_once("## `stackglass heap watch`").expect("a heading on `heap watch`");
    let blocks = rest.split("```json\n").skip(1);
    blocks.map(|block| block.split_once("```").unwrap().0.to_owned()).collect()
}

#[test]
fn json_is_as_documented() {
    let small = || {
        let mut heap = Maker::new();
        let statics = heap.root(ROOT, "(static data)");
        let app = heap.root(statics, "app");
        let variable = heap.root(app, "app::CACHE");
        let buffer = heap.node(NodeKind::Array, "[String]", 96);
        heap.nodes[buffer as usize].3 = 48;
        heap.field(variable, buffer, "names");
        heap.allocated_by(buffer, "app::load", 12);
        for index in 0..2 {
            let text = heap.node(NodeKind::String, "visit", 5);
            heap.element(buffer, text, index);
        }
        let unreachable = heap.root(ROOT, UNREACHABLE);
        let lost = heap.node(NodeKind::Object, "RcInner<Node>", 32);
        heap.element(unreachable, lost, 0);
        heap.allocated_by(lost, "app::lose", 7);
        heap
    };
    let mut graph = small().graph();
    graph.addresses = (0..graph.len() as u64).map(|row| if row < 4 { 0 } else { row * 16 - 16 }).collect();
    let answers = HeapAnswers::new(&graph);
    let texts = answers.type_answer("(string)", 5).unwrap();
    let blocks = answers.blocks_of_type("(string)", 5).unwrap();
    let answer = answers.type_answer("[String]", 5).unwrap();
    let mut later = small();
    later.object(3, "more", "[String]", 192);
    let later = later.graph();
    let sums = [HeapSums::new(&graph), HeapSums::new(&later)];
    let written = [
        written(|out| heap::write_show_json(&answers, out)),
        written(|out| heap::write_type_json(&answer, out)),
        written(|out| heap::write_blocks_json(&texts, &blocks, out)),
        written(|out| heap::write_path_json(&answer, out)),
        written(|out| heap::write_retainers_json(&answer, out)),
        written(|out| heap::write_growth_json(&sums, &growth(&sums), out)),
    ];
    let documented = documented();
    assert_eq!(documented.len(), written.len(), "\n{}", written.join("\n"));
    for (written, documented) in written.iter().zip(&documented) {
        assert_eq!(written, documented, "\n{written}");
    }
}

/// Candidates to which nothing leads: a cycle. Others: what a `Weak` and a word in a buffer lead to, and what that holds.
#[test]
fn candidates_behind_weak_edges_are_no_certain_leaks() {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.object(statics, "app", "App", 64);
    let buffer = heap.object(app, "buffer", "[u8]", 8);
    let unreachable = heap.root(ROOT, UNREACHABLE);
    let lost = [0, 1].map(|index| {
        let node = heap.node(NodeKind::Object, "RcInner<Node>", 32);
        heap.element(unreachable, node, index);
        node
    });
    heap.field(lost[0], lost[1], "value.next");
    heap.field(lost[1], lost[0], "value.next");
    let weak = heap.node(NodeKind::Object, "RcInner<Entry>", 100);
    heap.element(unreachable, weak, 2);
    heap.edges.push((app, weak, EdgeKind::Weak, Err("entry".into())));
    let slot = heap.node(NodeKind::Object, "Slot", 7);
    heap.element(unreachable, slot, 3);
    heap.edges.push((buffer, slot, EdgeKind::Weak, Err("word 0".into())));
    let inside = heap.node(NodeKind::Object, "Inside", 1000);
    heap.element(unreachable, inside, 4);
    heap.field(slot, inside, "inside");
    let behind = heap.node(NodeKind::Object, "Behind", 10_000);
    heap.element(unreachable, behind, 5);
    heap.edges.push((inside, behind, EdgeKind::Weak, Err("word 1".into())));
    let graph = heap.graph();
    let answers = HeapAnswers::new(&graph);
    let leaks = answers.leaks();
    assert_eq!((leaks.lost_count, leaks.lost_size), (2, 64));
    assert_eq!((leaks.weak_count, leaks.weak_size), (4, 11_107));
    let owners: Vec<_> = leaks.owners.iter().map(|row| (row.name.as_str(), row.weak, row.count)).collect();
    let expected =
        [("Behind", true, 1), ("Slot", true, 2), ("RcInner<Entry>", true, 1), ("RcInner<Node>", false, 2)];
    assert_eq!(owners, expected);
    let text = written(|out| HeapText::new("app").show(&answers, out));
    check("heap-weak-80.txt", &text);
    let answer = answers.type_answer("Slot", 1).unwrap();
    assert_eq!((answer.unreachable.count, answer.only_weak), (1, 1));
    assert_eq!(answers.type_answer("RcInner<Node>", 1).unwrap().only_weak, 0);
    let sums = HeapSums::new(&graph);
    assert_eq!((sums.unreachable_count, sums.lost_size), (6, 64));
}

/// Elements and words with a number are one row, wherever the number is.
#[test]
fn retainers_have_no_indices() {
    let mut heap = Maker::new();
    let table = heap.object(ROOT, "table", "Table", 64);
    for index in [0, 10] {
        let item = heap.node(NodeKind::Object, "Item", 8);
        heap.field(table, item, &format!("slots[{index}].b"));
        heap.edges.push((table, item, EdgeKind::Weak, Err(format!("word {index}"))));
    }
    let graph = heap.graph();
    let answer = HeapAnswers::new(&graph).type_answer("Item", 1).unwrap();
    let rows: Vec<_> =
        answer.retainers.iter().map(|row| (row.field.as_str(), row.weak, row.edges, row.count)).collect();
    assert_eq!(rows, [(".slots[…].b", false, 2, 2), (".word …", true, 2, 2)]);
}

/// Groups of small blocks count as their members, and grow as they do.
#[test]
fn groups_count_as_blocks() {
    let made = |grouped: bool| {
        let mut heap = Maker::new();
        let list = heap.object(ROOT, "list", "List", 64);
        let unreachable = heap.root(ROOT, UNREACHABLE);
        let mut members = Vec::new();
        for (holder, count) in [(list, 11_u32), (unreachable, 3)] {
            for index in 0..if grouped { 1 } else { count } {
                let (size, stands_for) = if grouped { (16 * u64::from(count), count) } else { (16, 1) };
                let text = heap.node(NodeKind::String, "again", size);
                heap.element(holder, text, index);
                members.push((text, stands_for));
            }
        }
        let mut graph = heap.graph();
        if grouped {
            graph.members = vec![1; graph.len()];
            members.into_iter().for_each(|(node, count)| graph.members[node as usize] = count);
        }
        graph
    };
    let graphs = [made(false), made(true)];
    let [plain, small] = graphs.each_ref().map(HeapAnswers::new);
    assert_eq!(small.types(), plain.types());
    assert_eq!(small.waste(), plain.waste());
    let (leaks, expected) = (small.leaks(), plain.leaks());
    assert_eq!((leaks.lost_count, leaks.lost_size), (expected.lost_count, expected.lost_size));
    assert_eq!(leaks.owners[0].count, 3);
    assert_eq!(small.largest(1)[0].count, 12);
    let retainers = |answers: &HeapAnswers<'_>| answers.type_answer("(string)", 1).unwrap().retainers;
    assert_eq!(retainers(&small), retainers(&plain));
    let sums = graphs.each_ref().map(HeapSums::new);
    assert!(growth(&sums).is_empty());
    assert_eq!((sums[1].nodes, sums[1].unreachable_count), (sums[0].nodes, 3));
    let text = written(|out| HeapText::new("app").show(&small, out));
    assert!(text.contains("note: `--group small` put 14 small blocks into 2 nodes"), "{text}");
}

#[test]
fn sizes_of_one_are_counts() {
    let mut heap = Maker::new();
    let list = heap.object(ROOT, "list", "List", 1);
    for index in 0..1999 {
        let job = heap.node(NodeKind::Object, "Job", 1);
        heap.element(list, job, index);
    }
    let graph = heap.graph();
    let text = written(|out| HeapText::new("app").show(&HeapAnswers::new(&graph), out));
    assert!(text.starts_with("app  2000 blocks alive, 2000 edges\n"), "{text}");
    assert!(text.contains("note: each block has the size 1 (`--all-one`)"), "{text}");
    assert!(!text.contains(" kB") && !text.contains(" B "), "{text}");
}

/// Blocks of one type on one path are one holder, however large each is, and those on another path are not.
#[test]
fn many_small_holders_come_before_a_large_one() {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    let table = heap.root(app, "SESSIONS");
    let log = heap.root(app, "LOG");
    heap.object(log, "lines", "[Line]", 900);
    // Each session is shared with an index, so no block holds them all.
    let (index, slots) = (heap.root(app, "INDEX"), heap.object(table, "slots", "[Slot]", 100));
    let names = heap.object(index, "names", "[Name]", 100);
    for number in 0..10 {
        let session = heap.node(NodeKind::Object, "Session", 200 + u64::from(number));
        heap.element(slots, session, number);
        heap.element(names, session, number);
        heap.object(session, "buffer", "[u8]", 50);
    }
    let other = heap.node(NodeKind::Object, "Session", 300);
    heap.field(log, other, "session");
    heap.field(table, other, "newest");
    let graph = heap.graph();
    let all = HeapAnswers::new(&graph).largest(4);
    let rows: Vec<_> =
        all.iter().map(|row| (row.name.as_str(), row.alike, row.count, row.retained_size)).collect();
    assert_eq!(rows[..2], [("Session", 10, 20, 2545), ("[Line]", 1, 1, 900)]);
    assert!(rows[2..].contains(&("Session", 1, 1, 300)), "{rows:?}");
}
