//! What grows in copies of a process with known content.

use crate::goldens::check;
use crate::maker::{Maker, ROOT};
use stackglass_heap_report::HeapText;
use stackglass_heap_report::answers::alike::AlikeSums;
use stackglass_heap_report::answers::growth::Sum;
use stackglass_heap_report::answers::watch::{Grown, TakenCopy, Watch};
use stackglass_heap_report::reports::write_watch_json;
use stackglass_profile::heap_graph::{EdgeKind, HeapGraph, NodeKind, UNREACHABLE};
use std::time::Duration;

/// A server after some time. Sessions in a list, records of unknown type, and blocks that nothing holds are more each time.
fn server(step: u32) -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "server");
    let sessions = heap.root(app, "server::SESSIONS");
    let mut holder = sessions;
    for _ in 0..10 * (step + 1) {
        holder = heap.object(holder, "next", "Session", 64);
        heap.allocated_by(holder, "server::accept", 71);
        heap.object(holder, "name", "String", 24);
    }
    // It doubles once.
    let table = heap.root(app, "server::TABLE");
    heap.object(table, "slots", "[Slot]", if step < 2 { 4096 } else { 8192 });
    // The oldest is replaced.
    let jobs = heap.root(app, "server::JOBS");
    for index in 0..64 {
        let job = heap.node(NodeKind::Object, "Job", 400);
        heap.element(jobs, job, (index + step) % 64);
    }
    let other = heap.root(app, "(other data)");
    for index in 0..5 * (step + 1) {
        let record = heap.node(NodeKind::Native, "(unknown)", 56);
        heap.element(other, record, index);
    }
    let stacks = heap.root(ROOT, "(thread stacks)");
    let thread = heap.root(stacks, &format!("thread {} worker", 4711 + step));
    let outer = heap.root(thread, &format!("server::serve (main.rs:{})", 10 + step));
    let inner = heap.root(thread, &format!("server::handle (main.rs:{})", 20 + step));
    // The same number, held by one frame and then by the other.
    for index in 0..20 {
        let text = heap.node(NodeKind::String, "Vec<u8>", 100);
        heap.element(if step.is_multiple_of(2) { outer } else { inner }, text, index);
    }
    // More each time, by changing frames.
    for index in 0..100 + step {
        let packet = heap.node(NodeKind::Object, "Packet", 32);
        heap.element(if step.is_multiple_of(2) { inner } else { outer }, packet, 100 + index);
    }
    // As many texts, which are a bit longer.
    for index in 0..300 {
        let text = heap.node(NodeKind::String, "String", 20 + u64::from(index < step));
        heap.field(outer, text, &format!("words[{index}]"));
    }
    let unreachable = heap.root(ROOT, UNREACHABLE);
    for index in 0..=step {
        let lost = heap.node(NodeKind::Native, "site: server::forget (main.rs:90)", 1000);
        heap.element(unreachable, lost, index);
    }
    let doubtful = heap.node(NodeKind::Object, "Entry", 200);
    heap.element(unreachable, doubtful, 100);
    heap.edges.push((table, doubtful, EdgeKind::Weak, Err("entry".into())));
    heap.graph()
}

fn watched(copies: u32, graph: fn(u32) -> HeapGraph) -> Watch {
    let mut watch = Watch::default();
    for number in 0..copies {
        let sums = AlikeSums::new(&graph(number));
        let copy = TakenCopy {
            at: Duration::from_secs(10) * number,
            typed: Sum { count: sums.all.count / 2, self_size: sums.all.self_size / 2 },
            pause: Duration::from_micros(1500 + u64::from(number)),
            ..TakenCopy::default()
        };
        watch.add(copy, sums);
    }
    watch
}

fn text(watch: &Watch, grown: &Grown, cols: usize) -> String {
    let mut out = Vec::new();
    HeapText::new("server (4711)").cols(cols).watch(watch, grown, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Name, path, whether it is a likely leak, number of steps, and growth in blocks and bytes.
fn rows(grown: &Grown) -> Vec<(String, String, bool, usize, i128, i128)> {
    let row = |row: &stackglass_heap_report::answers::watch::GrownRow| {
        let path = row.path.parts().join(" → ");
        (row.name.clone(), path, row.is_likely_leak, row.steps, row.count_growth(), row.growth())
    };
    grown.rows.iter().map(row).collect()
}

#[test]
fn leaks_are_told_from_what_has_grown_once() {
    let watch = watched(5, server);
    let grown = watch.grown();
    let all = rows(&grown);
    let row = |name: &str, path: &str, leaks: bool, steps: usize, count: i128, bytes: i128| {
        (name.to_owned(), path.to_owned(), leaks, steps, count, bytes)
    };
    let expected = [
        row(
            "site: server::forget (main.rs:90)",
            "(unreachable blocks) → site: server::forget (main.rs:90)",
            true,
            4,
            4,
            4000,
        ),
        row("Session", "(static data) server → server::SESSIONS → .next", true, 4, 40, 2560),
        row("(unknown)", "(static data) server → (other data) → (unknown)", true, 4, 20, 1120),
        row("String", "(static data) server → server::SESSIONS → .next → .name", true, 4, 40, 960),
        // Frames hold it in turn: all of it together grew.
        row("Packet", "(thread stacks) thread worker → server::handle → Packet", true, 4, 4, 128),
        row("[Slot]", "(static data) server → server::TABLE → .slots", false, 1, 0, 4096),
        row("String", "(thread stacks) thread worker → server::serve → .words[…]", false, 4, 0, 4),
    ];
    assert_eq!(all, expected, "{all:#?}");
    assert_eq!(grown.rows[1].site.as_deref(), Some("server::accept (main.rs:71)"));
    assert_eq!(grown.rows[2].size_class.map(|class| class.sizes()), Some(49..=56));
    let written = text(&watch, &grown, 80);
    check("heap-watch-80.txt", &written);
    for cols in (60..130).step_by(7) {
        let written = text(&watch, &grown, cols);
        assert!(written.lines().all(|line| line.chars().count() <= cols), "{cols}: {written}");
    }
}

/// One step is no proof.
#[test]
fn two_copies_show_growth_and_no_leaks() {
    let watch = watched(2, server);
    let grown = watch.grown();
    assert!(grown.rows.iter().all(|row| !row.is_likely_leak), "{grown:?}");
    // What one frame held is held by the other.
    assert!(grown.rows.iter().all(|row| row.name != "Vec<u8>"), "{grown:?}");
    check("heap-watch-two-80.txt", &text(&watch, &grown, 80));
    let nothing = watched(1, server);
    assert!(text(&nothing, &nothing.grown(), 80).ends_with("\nnothing has grown\n"));
}

/// A block more in each seventh copy, and a table that has doubled once.
fn slow(number: u32) -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    let list = heap.root(app, "LIST");
    let mut at = list;
    for _ in 0..=number / 7 {
        at = heap.object(at, "next", "Node", 16);
    }
    let table = heap.root(app, "TABLE");
    heap.object(table, "slots", "[Slot]", if number < 20 { 4096 } else { 8192 });
    heap.graph()
}

/// Two blocks more in each second copy: one that nothing leads to, and one that a list holds.
fn in_bursts(number: u32) -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    let mut at = heap.root(app, "LIST");
    let unreachable = heap.root(ROOT, UNREACHABLE);
    for index in 0..=number / 2 {
        at = heap.object(at, "next", "Node", 16);
        let lost = heap.node(NodeKind::Object, "Request", 300);
        heap.element(unreachable, lost, index);
    }
    heap.graph()
}

/// The list may be a cache that becomes full.
#[test]
fn what_is_lost_now_and_then_is_a_likely_leak() {
    let watch = watched(5, in_bursts);
    let grown = watch.grown();
    let leaks: Vec<_> = rows(&grown).iter().map(|row| (row.0.clone(), row.2, row.3)).collect();
    assert_eq!(leaks, [("Request".into(), true, 2), ("Node".into(), false, 2)]);
    assert!(text(&watch, &grown, 80).contains("\nGrew in each of 4 steps, or lost: likely leaks\n"));
}

#[test]
fn steps_become_longer_with_time() {
    for copies in 2..100 {
        let watch = watched(copies, slow);
        let compared = watch.grown().compared;
        assert_eq!(watch.copies().len(), copies as usize);
        assert!(compared.len() == copies as usize || (5..=9).contains(&compared.len()), "{compared:?}");
        assert_eq!((compared[0], compared[compared.len() - 1]), (0, copies as usize - 1));
        let steps: Vec<usize> = compared.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (last, others) = steps.split_last().unwrap();
        // The last one is as long as the others, or longer.
        assert!(others.iter().all(|step| *step == others[0] && last >= step), "{compared:?}");
    }
    assert!(watched(9, slow).grown().rows.iter().all(|row| !row.is_likely_leak));
    let all = rows(&watched(80, slow).grown());
    let leaks: Vec<_> = all.iter().map(|row| (row.0.as_str(), row.2)).collect();
    assert_eq!(leaks, [("Node", true), ("[Slot]", false)], "{all:?}");
}

#[test]
fn json_is_as_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, section) = guide.split_once("## `stackglass heap watch`").expect("a section on `heap watch`");
    let (_, example) = section.split_once("```json\n").unwrap();
    let documented = example.split_once("```").unwrap().0;
    fn small(number: u32) -> HeapGraph {
        let mut heap = Maker::new();
        let statics = heap.root(ROOT, "(static data)");
        let app = heap.root(statics, "app");
        let cache = heap.root(app, "app::CACHE");
        for _ in 0..=number {
            let text = heap.object(cache, "names", "String", 24);
            heap.allocated_by(text, "app::load", 12);
        }
        heap.graph()
    }
    let watch = watched(3, small);
    let mut out = Vec::new();
    write_watch_json(4711, "asked", &watch, &watch.grown(), &mut out).unwrap();
    let written = String::from_utf8(out).unwrap();
    assert_eq!(written, documented, "\n{written}");
}
