//! The path by which each node is held, so that it is the same in every snapshot of a process.
//!
//! The shortest path to a block changes while a program runs: a frame of a stack holds it for a moment, a list has become longer.
//! Here, variables come before frames, outer frames before inner ones, and the program's own before those of libraries. Indices of
//! elements, ids of threads, lines of frames and sizes of mappings are left out. Below a node of the same type, as in a list or tree, a node has that
//! node's path.

use super::edges::{Labels, range, weak};
use super::paths::{HeapPath, Step};
use super::type_names::TypeNames;
use super::weakly_reached::weakly_reached;
use super::{Bits, unreachable_node};
use foldhash::HashMap;
use stackglass_profile::heap_graph::{HeapGraph, NodeIndex, UNREACHABLE};
use stackglass_profile::runtimes::is_of_library;

/// The name of the group of blocks to which only weak edges lead.
pub(crate) const WEAKLY_HELD: &str = "(only weak edges lead here)";

/// No path leads to a node.
const NONE: u32 = u32::MAX;
/// The path of the root of the graph.
const ROOT: u32 = 0;
/// Deeper nodes have the path of the node above.
const DEEPEST: u32 = 64;

/// When a search begins at a root: those that hold the same in every snapshot come first.
const VARIABLES: usize = 0;
/// Memory of modules and threads without a name.
const OTHER_DATA: usize = 1;
/// Frames, the outermost first.
const FRAMES: usize = 2;
const OTHER_MEMORY: usize = 62;
/// Variables and frames of libraries.
const LIBRARIES: usize = 63;

/// Paths of all nodes.
pub(super) struct Holders {
    paths: Vec<Path>,
    /// By node.
    of: Vec<u32>,
}

/// A path: one step more than another one.
struct Path {
    above: u32,
    depth: u32,
    step: Step,
    /// The number of the type, or of the name of a root.
    kind: u32,
}

impl Holders {
    pub fn new(graph: &HeapGraph, types: &TypeNames, alive: &Bits) -> Holders {
        let mut search = Search {
            graph,
            types,
            labels: Labels::new(graph),
            weak: weak(graph),
            label_numbers: HashMap::default(),
            texts: HashMap::default(),
            known: HashMap::default(),
            holders: Holders {
                paths: vec![Path { above: ROOT, depth: 0, step: root_step(""), kind: NONE }],
                of: vec![NONE; graph.len()],
            },
            waiting: vec![Vec::new(); LIBRARIES + 1],
        };
        search.run(alive);
        search.holders
    }

    /// The number of the path to a node. Equal paths have equal numbers.
    pub fn number(&self, node: usize) -> Option<u32> {
        Some(self.of[node]).filter(|path| *path != NONE)
    }

    /// The path with a number.
    pub fn path(&self, number: u32) -> HeapPath {
        let above = |at: &u32| Some(self.paths[*at as usize].above).filter(|above| *above != ROOT);
        let numbers = std::iter::successors(Some(number).filter(|number| *number != ROOT), above);
        let mut steps: Vec<Step> = numbers.map(|at| self.paths[at as usize].step.clone()).collect();
        steps.reverse();
        HeapPath { steps }
    }
}

fn root_step(name: &str) -> Step {
    Step { label: name.to_owned(), name: name.to_owned(), is_root: true }
}

struct Search<'g> {
    graph: &'g HeapGraph,
    types: &'g TypeNames,
    labels: Labels<'g>,
    weak: u8,
    /// Of the kind and name of an edge: the number of its label.
    label_numbers: HashMap<(u8, u32), u32>,
    texts: HashMap<String, u32>,
    /// Of a path, and the label and kind of a step from there: the path.
    known: HashMap<(u32, u32, u32), u32>,
    holders: Holders,
    /// Roots by the time when they are searched.
    waiting: Vec<Vec<u32>>,
}

impl Search<'_> {
    fn run(&mut self, alive: &Bits) {
        let graph = self.graph;
        if graph.is_empty() {
            return;
        }
        self.holders.of[0] = ROOT;
        let unreachable = unreachable_node(graph);
        for group in targets(graph, 0, self.weak).filter(|node| Some(*node) != unreachable) {
            if !self.is_root(group) {
                self.enter(0, group, VARIABLES);
                continue;
            }
            let name = graph.name(NodeIndex(group));
            self.holders.of[group as usize] = self.root(ROOT, name);
            for owner in targets(graph, group, self.weak) {
                if !self.is_root(owner) {
                    self.enter(group, owner, VARIABLES);
                    continue;
                }
                let above = self.holders.of[group as usize];
                self.holders.of[owner as usize] = self.root(above, &without_id(graph.name(NodeIndex(owner))));
                for (index, root) in targets(graph, owner, self.weak).enumerate() {
                    let when = time(name, graph.name(NodeIndex(root)), index);
                    self.enter(owner, root, when);
                }
            }
        }
        for time in 0..self.waiting.len() {
            let roots = std::mem::take(&mut self.waiting[time]);
            self.search(roots, unreachable);
        }
        if let Some(unreachable) = unreachable {
            self.search_unreachable(unreachable, alive);
        }
    }

    /// The starts to which nothing leads come first.
    fn search_unreachable(&mut self, unreachable: u32, alive: &Bits) {
        let weakly = weakly_reached(self.graph, alive, Some(unreachable));
        for (name, is_weak) in [(UNREACHABLE, false), (WEAKLY_HELD, true)] {
            self.holders.of[unreachable as usize] = self.root(ROOT, name);
            for node in targets(self.graph, unreachable, self.weak) {
                if weakly.get(node as usize) == is_weak {
                    self.enter(unreachable, node, VARIABLES);
                }
            }
            let starts = std::mem::take(&mut self.waiting[VARIABLES]);
            self.search(starts, Some(unreachable));
        }
    }

    fn is_root(&self, node: u32) -> bool {
        self.types.is_root(self.graph, node as usize)
    }

    /// Searches from a child of a node later.
    fn enter(&mut self, from: u32, to: u32, when: usize) {
        if self.holders.of[to as usize] != NONE {
            return;
        }
        let above = self.holders.of[from as usize];
        self.holders.of[to as usize] = match self.is_root(to) {
            true => self.root(above, without_line(self.graph.name(NodeIndex(to)))),
            false => self.block(above, None, to),
        };
        self.waiting[when].push(to);
    }

    fn search(&mut self, mut queue: Vec<u32>, unreachable: Option<u32>) {
        let mut next = 0;
        while let Some(from) = queue.get(next).copied() {
            next += 1;
            for edge in range(self.graph, from) {
                let to = self.graph.targets[edge].0;
                if self.graph.kinds_of_edges[edge] == self.weak
                    || self.holders.of[to as usize] != NONE
                    || Some(to) == unreachable
                {
                    continue;
                }
                let above = self.holders.of[from as usize];
                self.holders.of[to as usize] = self.block(above, Some(edge), to);
                queue.push(to);
            }
        }
    }

    fn label(&mut self, edge: usize) -> u32 {
        let key = (self.graph.kinds_of_edges[edge], self.graph.names_of_edges[edge]);
        if let Some(number) = self.label_numbers.get(&key) {
            return *number;
        }
        let number = self.text(&self.labels.without_index(edge));
        self.label_numbers.insert(key, number);
        number
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn root(&mut self, above: u32, name: &str) -> u32 {
        let kind = self.types.len() as u32 + self.text(name);
        if let Some(known) = self.known.get(&(above, NONE, kind)) {
            return *known;
        }
        self.add((above, NONE, kind), root_step(name))
    }

    /// The path to a block by an edge. The index of a block in a root says less than its type.
    fn block(&mut self, above: u32, edge: Option<usize>, node: u32) -> u32 {
        let label = match edge {
            Some(edge) => self.label(edge),
            None => self.text(""),
        };
        if let Some(path) = self.found(above, label, node) {
            return path;
        }
        let kind = self.types.of(self.graph, node as usize);
        let label_text = edge.map_or_else(String::new, |edge| self.labels.without_index(edge).into_owned());
        let step =
            Step { label: label_text, name: self.types.without_size(kind).0.to_owned(), is_root: false };
        self.add((above, label, kind), step)
    }

    /// The path of a node of the same type above, or a known one.
    fn found(&self, above: u32, label: u32, node: u32) -> Option<u32> {
        let kind = self.types.of(self.graph, node as usize);
        let paths = &self.holders.paths;
        let mut at = above;
        while !paths[at as usize].step.is_root {
            if paths[at as usize].kind == kind {
                return Some(at);
            }
            at = paths[at as usize].above;
        }
        if paths[above as usize].depth >= DEEPEST {
            return Some(above);
        }
        self.known.get(&(above, label, kind)).copied()
    }

    fn add(&mut self, key: (u32, u32, u32), step: Step) -> u32 {
        let depth = self.holders.paths[key.0 as usize].depth + 1;
        let number = self.holders.paths.len() as u32;
        self.holders.paths.push(Path { above: key.0, depth, step, kind: key.2 });
        self.known.insert(key, number);
        number
    }
}

/// What a node holds.
fn targets(graph: &HeapGraph, from: u32, weak: u8) -> impl Iterator<Item = u32> + '_ {
    range(graph, from)
        .filter(move |edge| graph.kinds_of_edges[*edge] != weak)
        .map(|edge| graph.targets[edge].0)
}

/// When the search from a root begins: by its group, its name, and its place below its owner.
fn time(group: &str, name: &str, index: usize) -> usize {
    match group {
        _ if is_of_library(name) => LIBRARIES,
        "(static data)" | "(thread locals)" if name.starts_with('(') => OTHER_DATA,
        "(thread stacks)" => (FRAMES + index).min(OTHER_MEMORY - 1),
        "(registers)" | "(other memory)" => OTHER_MEMORY,
        _ => VARIABLES,
    }
}

/// `thread app` of `thread 4711 app`.
fn without_id(owner: &str) -> String {
    let named = owner.strip_prefix("thread ").and_then(|rest| rest.split_once(' '));
    match named {
        Some((id, name)) if id.bytes().all(|byte| byte.is_ascii_digit()) => format!("thread {name}"),
        _ => owner.to_owned(),
    }
}

/// `app::run` of `app::run (main.rs:9)`, and `mapping` of `mapping of 1228 KiB`.
fn without_line(frame: &str) -> &str {
    if frame.starts_with("mapping of ") {
        return "mapping";
    }
    let place = frame.rfind(" (").filter(|at| *at > 0 && frame.ends_with(')') && frame[*at..].contains(':'));
    &frame[..place.unwrap_or(frame.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_lines_are_left_out() {
        assert_eq!(without_id("thread 4711 tokio-rt-worker"), "thread tokio-rt-worker");
        assert_eq!(without_id("libapp.so"), "libapp.so");
        assert_eq!(without_line("app::run (main.rs:9)"), "app::run");
        assert_eq!(without_line("(other data)"), "(other data)");
        assert_eq!(without_line("operator() (a.cpp:4)"), "operator()");
        assert_eq!(without_line("f (int)"), "f (int)");
        assert_eq!(without_line("mapping of 1228 KiB"), "mapping");
    }

    #[test]
    fn what_changes_least_is_searched_first() {
        let order = [
            ("(static data)", "app::CACHE"),
            ("(static data)", "(other data)"),
            ("(thread stacks)", "main"),
            ("(registers)", "registers"),
            ("(thread locals)", "tokio::runtime::context::CONTEXT"),
        ];
        assert!(order.map(|(group, name)| time(group, name, 0)).is_sorted());
        assert!(time("(thread stacks)", "outer", 0) < time("(thread stacks)", "inner", 1));
        assert!(time("(thread stacks)", "deep", 1000) < OTHER_MEMORY);
    }
}
