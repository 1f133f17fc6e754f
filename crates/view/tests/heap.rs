//! A heap snapshot as the page reads it, against the answers of `stackglass heap show`.

use stackglass_heap_report::answers::{HeapAnswers, OwnerRow};
use stackglass_profile::Recording;
use stackglass_profile::heap_graph::{EdgeKind, HeapGraph, NodeKind, UNREACHABLE};
use stackglass_view::{Beside, Heap, Packed};
use std::collections::HashMap;

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../../heap_report/tests/maker.rs"]
mod maker;
use maker::{Maker, ROOT};

mod columns;
mod numbers;
use columns::columns;
use numbers::numbers;

/// A list in a static, whose elements hold texts; and two leaked cycles.
fn graph() -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let app = heap.root(statics, "app");
    let list = heap.root(app, "app::LIST");
    let mut node = heap.object(list, "head", "Node", 32);
    for number in 0..50 {
        let text = heap.object(node, "name", if number % 2 == 0 { "[u8]" } else { "String" }, 10 + number);
        heap.allocated_by(text, "app::read", 7);
        node = heap.object(node, "next", "Node", 32);
    }
    let unreachable = heap.root(ROOT, UNREACHABLE);
    for index in 0..2 {
        let (parent, child) = (heap.nodes.len() as u32, heap.nodes.len() as u32 + 1);
        heap.node(NodeKind::Object, "Parent", 56);
        heap.node(NodeKind::Object, "Child", 40);
        heap.element(unreachable, parent, index);
        heap.field(parent, child, "child");
        heap.field(child, parent, "parent");
        heap.allocated_by(parent, "app::pair", 40 + index);
    }
    let weak = heap.node(NodeKind::Object, "Cached", 8);
    heap.element(unreachable, weak, 2);
    heap.edges.push((list, weak, EdgeKind::Weak, Err("cache".to_owned())));
    heap.graph()
}

/// What the page has of it: columns of numbers, and strings.
struct Read {
    columns: HashMap<&'static str, Vec<u64>>,
    strings: Vec<String>,
}

impl Read {
    fn new(packed: &Packed) -> Read {
        let all = columns(packed);
        let strings = serde_json::from_slice(&all["heap.strings"]).unwrap();
        let is_numbers = |name: &str| name.starts_with("heap.") && name != "heap.strings";
        let tables = all.into_iter().filter(|(name, _)| is_numbers(name));
        Read { columns: tables.map(|(name, column)| (name, numbers(&column))).collect(), strings }
    }

    /// The rows of a table. In columns with these names, numbers are those of strings.
    fn rows(&self, table: &str, names: &[&str]) -> Vec<Vec<String>> {
        let column = |name: &str| &self.columns[format!("heap.{table}.{name}").as_str()];
        let cell = |name: &str, row: usize| match (name, column(name)[row]) {
            ("name" | "other" | "field" | "of", number) => self.strings[number as usize].clone(),
            ("path", number) => self.path(number),
            (_, number) => number.to_string(),
        };
        (0..column(names[0]).len()).map(|row| names.iter().map(|name| cell(name, row)).collect()).collect()
    }

    fn path(&self, number: u64) -> String {
        let mut flat = &self.columns["heap.paths"][..];
        for _ in 0..number {
            flat = &flat[flat[0] as usize + 1..];
        }
        let parts = flat[1..=flat[0] as usize].iter().map(|part| self.strings[*part as usize].as_str());
        parts.collect::<Vec<_>>().join(" → ")
    }
}

fn texts<const N: usize>(row: [String; N]) -> Vec<String> {
    row.to_vec()
}

#[test]
fn figures_are_those_of_heap_show() {
    let graph = graph();
    let answers = HeapAnswers::new(&graph);
    let heap = Heap { name: "a.heapsnapshot", answers: &answers };
    let packed =
        Packed::with(Recording::default(), "heap", &Beside { heap: Some(heap), ..Beside::default() });
    let read = Read::new(&packed);

    let table = answers.types();
    let of = |alive: u64| {
        move |row: &stackglass_heap_report::answers::TypeRow| {
            let numbers =
                [alive, row.count, row.self_size, row.retained_size].map(|number| number.to_string());
            [vec![row.name.clone()], numbers.to_vec()].concat()
        }
    };
    let expected: Vec<_> = table.alive.iter().map(of(1)).chain(table.unreachable.iter().map(of(0))).collect();
    assert_eq!(read.rows("types", &["name", "alive", "count", "own", "retained"]), expected);
    assert_eq!(expected.len(), 6);

    let holders = read.rows("holders", &["of", "name", "alike", "count", "retained", "path"]);
    let row = |of: &str, row: &stackglass_heap_report::answers::Dominator| {
        let path = row.path.parts().join(" → ");
        let [alike, count, retained] =
            [row.alike, row.count, row.retained_size].map(|number| number.to_string());
        texts([of.to_owned(), row.name.clone(), alike, count, retained, path])
    };
    let mut expected: Vec<_> = answers.largest(100).iter().map(|found| row("", found)).collect();
    for name in ["Node", "[u8]", "String", "Parent", "Child", "Cached"] {
        let answer = answers.type_answer(name, 20).unwrap();
        expected.extend(answer.largest.iter().map(|found| row(name, found)));
    }
    let sorted = |mut rows: Vec<Vec<String>>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(holders), sorted(expected));

    let owner = |row: &OwnerRow| {
        let numbers = [row.weak.into(), row.owners, row.in_cycles, row.count, row.size];
        [vec![row.name.clone()], numbers.map(|number: u64| number.to_string()).to_vec()].concat()
    };
    let leaks = answers.leaks();
    let expected: Vec<_> = leaks.owners.iter().map(owner).collect();
    assert_eq!(read.rows("owners", &["name", "weak", "owners", "cycles", "count", "size"]), expected);
    assert_eq!(expected, [["Parent", "0", "2", "2", "4", "192"], ["Cached", "1", "1", "0", "1", "8"]]);

    for (holds, name) in [(0, "String"), (1, "Node")] {
        let answer = answers.type_answer(name, 1).unwrap();
        let rows = if holds == 0 { answer.retainers } else { answer.fields };
        let expected: Vec<_> = rows
            .iter()
            .map(|row| {
                let [edges, count, own] =
                    [row.edges, row.count, row.self_size].map(|number| number.to_string());
                texts([name.to_owned(), row.holder.clone(), row.field.clone(), edges, count, own])
            })
            .collect();
        let holds = holds.to_string();
        let mut rows = read.rows("fields", &["of", "other", "field", "edges", "count", "own", "holds"]);
        rows.retain(|row| row[0] == name && row[6] == holds);
        rows.iter_mut().for_each(|row| drop(row.pop()));
        assert_eq!(rows, expected);
    }
    let head: serde_json::Value = serde_json::from_str(packed.head()).unwrap();
    let sums = |what: &str| [head["heap"][what]["count"].as_u64(), head["heap"][what]["bytes"].as_u64()];
    assert_eq!(sums("lost"), [Some(leaks.lost_count), Some(leaks.lost_size)]);
    assert_eq!(sums("weak"), [Some(1), Some(8)]);
    assert_eq!(sums("alive")[0], Some(101));
}
