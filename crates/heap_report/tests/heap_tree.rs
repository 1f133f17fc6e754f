//! The dominator tree by type, and answers about all types: against those about one, and as sums that add up.

use crate::heap_graph::any_graph;
use crate::heap_text::server;
use proptest::prelude::*;
use stackglass_heap_report::answers::{HeapAnswers, HeapTree, TreeKind, TreeRow};

/// What is directly below a row and its own bytes are what would go with it. Without a row: what is at the top.
fn check_sums(tree: &HeapTree, whole: u64) {
    let sum_below = |at: usize, level: u32| -> (u64, u64) {
        let below = tree.rows[at..].iter().take_while(|row| row.level >= level);
        below
            .filter(|row| row.level == level)
            .fold((0, 0), |sum, row| (sum.0 + row.retained_size, sum.1 + row.count))
    };
    assert_eq!(sum_below(0, 0).0, whole);
    for (at, row) in tree.rows.iter().enumerate().filter(|(_, row)| row.kind != TreeKind::Rest) {
        let (bytes, blocks) = sum_below(at + 1, row.level + 1);
        assert_eq!(row.retained_size, row.self_size + bytes, "{row:?}");
        let own = if row.kind == TreeKind::Type { row.alike } else { 0 };
        assert_eq!(row.count, own + blocks, "{row:?}");
        assert!(row.retained_size >= tree.least, "{row:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rows_add_up(graph in any_graph(30), most in 0..20_usize) {
        let answers = HeapAnswers::new(&graph);
        let whole = answers.tree(usize::MAX);
        // Nodes in a cycle that nothing holds belong to the root, and are not in the tree.
        let size: u64 = whole.rows.iter().filter(|row| row.level == 0).map(|row| row.retained_size).sum();
        prop_assert!(size <= answers.self_size());
        prop_assert!(size == answers.self_size() || !answers.types().unreachable.is_empty());
        for tree in [whole, answers.tree(most)] {
            check_sums(&tree, size);
        }
    }

    #[test]
    fn all_types_are_as_each(graph in any_graph(30), rows in 1..5_usize) {
        let answers = HeapAnswers::new(&graph);
        let types = answers.types();
        for each in answers.each_type(usize::MAX) {
            let one = answers.type_answer(&each.name, usize::MAX).unwrap();
            prop_assert_eq!(&each.retainers, &one.retainers);
            prop_assert_eq!(&each.fields, &one.fields);
            prop_assert_eq!(&each.sites, &one.sites);
            prop_assert_eq!(&each.largest, &one.largest);
            let of = |rows: &[stackglass_heap_report::answers::TypeRow]| -> u64 {
                rows.iter().filter(|row| row.name == each.name).map(|row| row.retained_size).sum()
            };
            // As above: what is in the tree.
            if types.unreachable.is_empty() {
                prop_assert_eq!(each.retains.iter().map(|row| row.self_size).sum::<u64>(), of(&types.alive));
            }
        }
        for each in answers.each_type(rows) {
            prop_assert!(each.largest.len() <= rows && each.retainers.len() <= rows && each.retains.len() <= rows);
        }
    }
}

fn of_server(most: usize) -> (HeapTree, Vec<String>) {
    let graph = server(2000, false);
    let answers = HeapAnswers::new(&graph);
    let tree = answers.tree(most);
    check_sums(&tree, answers.self_size());
    let roots = answers.roots();
    for (name, size) in roots.groups {
        let row = tree.rows.iter().find(|row| row.level == 0 && row.name == name);
        assert_eq!(
            row.map_or(0, |row| row.retained_size),
            if size < tree.least { 0 } else { size },
            "{name}"
        );
    }
    let text = |row: &TreeRow| {
        let indent = " ".repeat(row.level as usize);
        format!(
            "{indent}{:?} {} {} {} {} {}",
            row.kind, row.name, row.alike, row.count, row.self_size, row.retained_size
        )
    };
    let lines = tree.rows.iter().map(text).collect();
    (tree, lines)
}

#[test]
fn a_known_heap() {
    let (_, lines) = of_server(1000);
    // Each list of jobs is one row: they hold each other.
    assert_eq!(
        lines.join("\n"),
        "Root (static data) 1 4001 0 640000
 Root server 1 4001 0 640000
  Root server::CACHE 1 4001 0 640000
   Type HashMap<u64, Session> table 1 4001 96000 640000
    Type [Event] 2000 2000 512000 512000
    Type String 2000 2000 32000 32000
Root (thread stacks) 1 501 0 32040
 Root main 4711 1 501 0 32040
  Root server::run 1 501 0 32040
   Type Job 500 501 32000 32040
    Type Config<'_, \u{1b}[2J> 1 1 40 40
Root (unreachable blocks) 1 7 0 8484
 Type RcInner<Parent> 2 6 112 8384
  Type RcInner<Child> 2 4 80 8272
   Type site: server::read (server.rs:71) 2 2 8192 8192
 Type site: server::forget (server.rs:90) 1 1 100 100"
    );
}

#[test]
fn small_rows_are_summed_up() {
    let (tree, lines) = of_server(8);
    assert_eq!(tree.least, 34 * 1024);
    assert_eq!(
        lines.join("\n"),
        "Root (static data) 1 4001 0 640000
 Root server 1 4001 0 640000
  Root server::CACHE 1 4001 0 640000
   Type HashMap<u64, Session> table 1 4001 96000 640000
    Type [Event] 2000 2000 512000 512000
    Rest  1 2000 0 32000
Rest  2 508 0 40524"
    );
}
