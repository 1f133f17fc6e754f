//! Answers about random heap graphs against their definitions, and about one graph whose answers are known.

use proptest::prelude::*;
use stackglass_heap_report::answers::{HeapAnswers, TypeRow};
use stackglass_profile::heap_graph::{
    EdgeKind, HeapGraph, HeapGraphBuilder, HeapGraphSink, NodeIndex, NodeKind, UNREACHABLE,
};
use std::collections::{BTreeMap, BTreeSet};

/// Names and sizes of nodes, and edges with whether they are weak. Node 0 is the root.
fn graph(nodes: &[(NodeKind, String, u64)], edges: &[(u32, u32, EdgeKind)]) -> HeapGraph {
    let mut builder = HeapGraphBuilder::default();
    let mut edges = edges.to_vec();
    edges.sort_by_key(|edge| edge.0);
    for (index, (kind, name, size)) in nodes.iter().enumerate() {
        let name = builder.name(name);
        builder.node(*kind, name, index as u64 * 2 + 1, *size).unwrap();
    }
    let field = builder.name("field");
    for (from, to, kind) in edges {
        builder.edge(NodeIndex(from), NodeIndex(to), kind, field.0).unwrap();
    }
    builder.finish()
}

/// Nodes that can be reached from `starts` over strong edges, without passing through a node.
pub fn reached(graph: &HeapGraph, starts: &[usize], without: Option<usize>) -> BTreeSet<usize> {
    let mut reached: BTreeSet<usize> = BTreeSet::new();
    let mut pending: Vec<usize> = starts.to_vec();
    while let Some(node) = pending.pop() {
        if Some(node) != without && reached.insert(node) {
            let strong = graph.edges(NodeIndex(node as u32)).filter(|edge| edge.kind != EdgeKind::Weak as u8);
            pending.extend(strong.map(|edge| edge.to.0 as usize));
        }
    }
    reached
}

pub fn any_graph(most: usize) -> impl Strategy<Value = HeapGraph> {
    let node = (0..3_usize, 1..100_u64);
    let kind = prop_oneof![4 => Just(EdgeKind::Property), 1 => Just(EdgeKind::Weak)];
    (2..most).prop_flat_map(move |len| {
        let edges = prop::collection::vec((0..len as u32, 1..len as u32, kind.clone()), 0..len * 3);
        (prop::collection::vec(node.clone(), len), edges).prop_map(|(nodes, edges)| {
            let named = |(index, (name, size)): (usize, &(usize, u64))| match index {
                0 => (NodeKind::Synthetic, String::new(), 0),
                _ => (NodeKind::Object, ["A", "B", "C"][*name].to_owned(), *size),
            };
            let nodes: Vec<_> = nodes.iter().enumerate().map(named).collect();
            graph(&nodes, &edges)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn retained_is_what_goes_with_a_node(graph in any_graph(14)) {
        let answers = HeapAnswers::new(&graph);
        let all = reached(&graph, &[0], None);
        // The root holds what nothing holds.
        let held: BTreeSet<usize> = (0..graph.len())
            .flat_map(|node| {
                let strong = graph.edges(NodeIndex(node as u32)).filter(|edge| edge.kind != EdgeKind::Weak as u8);
                strong.map(|edge| edge.to.0 as usize).filter(move |to| *to != node).collect::<Vec<_>>()
            })
            .collect();
        let mut starts = vec![0];
        starts.extend((0..graph.len()).filter(|node| !all.contains(node) && !held.contains(node)));
        let with_orphans = reached(&graph, &starts, None);
        for node in 1..graph.len() {
            let rest = reached(&graph, &starts, Some(node));
            let gone = with_orphans.iter().filter(|other| !rest.contains(other));
            let expected: u64 = match with_orphans.contains(&node) {
                true => gone.map(|other| graph.self_sizes.get(*other)).sum(),
                false => graph.self_sizes.get(node),
            };
            prop_assert_eq!(answers.retained_size(node), expected, "node {}", node);
            prop_assert_eq!(answers.is_alive(node), all.contains(&node));
        }
        prop_assert_eq!(answers.retained_size(0), answers.self_size());
    }

    #[test]
    fn types_count_nothing_twice(graph in any_graph(14)) {
        let table = HeapAnswers::new(&graph).types();
        let all = reached(&graph, &[0], None);
        let mut expected: BTreeMap<&str, TypeRow> = BTreeMap::new();
        for node in all.iter().filter(|node| **node != 0) {
            let name = graph.name(NodeIndex(*node as u32));
            let row = expected.entry(name).or_insert_with(|| TypeRow { name: name.to_owned(), ..TypeRow::default() });
            row.count += 1;
            row.self_size += graph.self_sizes.get(*node);
            // What each node of the type holds alone, all together.
        }
        let orphans = (0..graph.len()).any(|node| !all.contains(&node));
        for row in &table.alive {
            let known = &expected[row.name.as_str()];
            prop_assert_eq!((row.count, row.self_size), (known.count, known.self_size));
            if orphans {
                continue;
            }
            let mut union = BTreeSet::new();
            for node in all.iter().filter(|node| **node != 0 && graph.name(NodeIndex(**node as u32)) == row.name) {
                let rest = reached(&graph, &[0], Some(*node));
                union.extend(all.iter().copied().filter(|other| !rest.contains(other)));
            }
            let size: u64 = union.iter().map(|node| graph.self_sizes.get(*node)).sum();
            prop_assert_eq!(row.retained_size, size, "{}", row.name);
        }
        prop_assert_eq!(table.alive.len(), expected.len());
    }

    #[test]
    fn owners_reach_all_candidates(graph in any_graph(14)) {
        // All nodes that the root does not reach become candidates, in any order.
        let alive = reached(&graph, &[0], None);
        let mut nodes: Vec<_> = (0..graph.len())
            .map(|node| {
                let kind = if node == 0 { NodeKind::Synthetic } else { NodeKind::Object };
                (kind, graph.name(NodeIndex(node as u32)).to_owned(), graph.self_sizes.get(node))
            })
            .collect();
        nodes.push((NodeKind::Synthetic, UNREACHABLE.to_owned(), 0));
        let last = graph.len() as u32;
        let mut edges = vec![(0, last, EdgeKind::Property)];
        for node in 0..last {
            let kind = |kind: u8| if kind == EdgeKind::Weak as u8 { EdgeKind::Weak } else { EdgeKind::Property };
            edges.extend(graph.edges(NodeIndex(node)).map(|edge| (node, edge.to.0, kind(edge.kind))));
            if !alive.contains(&(node as usize)) {
                edges.push((last, node, EdgeKind::Element));
            }
        }
        let whole = self::graph(&nodes, &edges);
        let answers = HeapAnswers::new(&whole);
        let leaks = answers.leaks();
        let dead: BTreeSet<usize> = (1..graph.len()).filter(|node| !alive.contains(node)).collect();
        let sum = |of: fn(&stackglass_heap_report::answers::OwnerRow) -> u64| leaks.owners.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|row| row.count) + leaks.shared_count, dead.len() as u64);
        let size: u64 = dead.iter().map(|node| graph.self_sizes.get(*node)).sum();
        prop_assert_eq!(sum(|row| row.size) + leaks.shared_size, size);
        // An owner is reached by nothing that it does not reach itself: count the components without such an edge.
        let reach: BTreeMap<usize, BTreeSet<usize>> =
            dead.iter().map(|node| (*node, reached(&graph, &[*node], None))).collect();
        let mut sources = BTreeSet::new();
        for node in &dead {
            let above = dead.iter().filter(|other| reach[other].contains(node));
            if above.clone().all(|other| reach[node].contains(other)) {
                sources.insert(*above.min().unwrap());
            }
        }
        prop_assert_eq!(sum(|row| row.owners), sources.len() as u64);
        let cyclic = sources.iter().filter(|node| {
            dead.iter().any(|other| other != *node && reach[other].contains(node) && reach[node].contains(other))
        });
        prop_assert_eq!(sum(|row| row.in_cycles), cyclic.count() as u64);
        for node in 1..graph.len() {
            prop_assert_eq!(answers.is_alive(node), alive.contains(&node));
        }
        // What roots hold adds up to what is alive.
        let roots = answers.roots();
        let held = roots.groups.iter().map(|(_, size)| size).sum::<u64>() + roots.shared + roots.others;
        prop_assert_eq!(held, alive.iter().map(|node| graph.self_sizes.get(*node)).sum::<u64>());
    }
}

/// Kinds of nodes and edges by V8's numbers. The builder has no name for shortcuts.
const SHORTCUT: u8 = 5;

#[test]
fn distances_and_retained_sizes_are_those_of_devtools() {
    let text = include_str!("devtools.txt");
    let graphs = text.split("graph ").skip(1);
    let mut compared = 0;
    for lines in graphs {
        let numbers = |line: &str| -> Vec<Option<u64>> {
            line.split(' ').skip(1).map(|word| word.parse().ok()).collect()
        };
        let of = |begin: &str| -> Vec<Vec<Option<u64>>> {
            lines.lines().filter(|line| line.starts_with(begin)).map(numbers).collect()
        };
        let (nodes, edges) = (of("node"), of("edge"));
        let kind = |number: u64| match number {
            1 => NodeKind::Array,
            3 => NodeKind::Object,
            8 => NodeKind::Native,
            _ => NodeKind::Synthetic,
        };
        let named: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (kind(node[0].unwrap()), format!("T{}", index % 3), node[1].unwrap()))
            .collect();
        let edge_kind = |number: u64| match number {
            3 => EdgeKind::Internal,
            6 => EdgeKind::Weak,
            _ => EdgeKind::Property,
        };
        let number = |edge: &[Option<u64>], at: usize| edge[at].unwrap() as u32;
        let joined: Vec<_> = edges
            .iter()
            .map(|edge| (number(edge, 1), number(edge, 2), edge_kind(edge[0].unwrap())))
            .collect();
        let mut graph = graph(&named, &joined);
        for (at, edge) in edges.iter().enumerate().filter(|(_, edge)| edge[0] == Some(SHORTCUT.into())) {
            assert_eq!(graph.targets[at].0, number(edge, 2));
            graph.kinds_of_edges[at] = SHORTCUT;
        }
        let answers = HeapAnswers::new(&graph);
        for (node, expected) in nodes.iter().enumerate() {
            let found = (answers.distance(node), answers.retained_size(node));
            assert_eq!(found, (expected[2], expected[3].unwrap()), "node {node} of graph {lines}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
