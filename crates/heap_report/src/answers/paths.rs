//! The shortest path from a root to a node, by names of fields: from the program's own variables and frames, if one of them leads there.

use super::HeapAnswers;
use super::edges::{Labels, range, weak};
use super::reach;
use foldhash::HashSet;

/// Longer paths are shown with a gap.
const SHOWN: usize = 16;
/// The longest pattern of steps that is recognised as repeated.
const PERIOD: usize = 3;

/// A path from the root to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HeapPath {
    /// Its steps. The first one leads from the root.
    pub steps: Vec<Step>,
}

/// A step of a path.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Step {
    /// The field or element, such as `.map` or `[17]`.
    pub label: String,
    /// The type of the node to which it leads, or the name of a root.
    pub name: String,
    /// Whether it leads to a root or a group of roots.
    pub is_root: bool,
}

impl HeapPath {
    /// The parts of the path as text: names of roots, then fields. Repeated parts appear once, with their number. If there are more
    /// than 16, some in the middle are replaced by their number.
    pub fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            match step.is_root {
                // A group and the module or thread within it.
                true if index == 1 && self.steps[0].is_root => {
                    parts[0] = format!("{} {}", parts[0], step.name);
                }
                true => parts.push(step.name.clone()),
                false if self.is_named_by_type(index) => parts.push(step.name.clone()),
                false => parts.push(step.label.clone()),
            }
        }
        let mut folded = folded(&parts);
        if folded.len() > SHOWN {
            let hidden = folded.len() - SHOWN + 1;
            let end = folded.len() - SHOWN / 2;
            folded.splice(end - hidden..end, [format!("({hidden} steps)")]);
        }
        folded
    }

    /// As [`HeapPath::parts`], with the type of the last node at the end.
    pub fn parts_and_type(&self) -> Vec<String> {
        let mut parts = self.parts();
        match self.steps.last() {
            Some(step) if !step.is_root && !self.is_named_by_type(self.steps.len() - 1) => {
                parts.push(step.name.clone());
            }
            _ => {}
        }
        parts
    }

    /// The path as text: `(static data) app → app::CACHE → .map → [17].name → String`.
    pub fn text(&self) -> String {
        self.parts_and_type().join(" → ")
    }

    /// Whether a step is an index in a root, which says less than the type.
    fn is_named_by_type(&self, index: usize) -> bool {
        let is_below_root = index == 0 || self.steps[index - 1].is_root;
        is_below_root && (self.steps[index].label.is_empty() || self.steps[index].label.starts_with('['))
    }
}

/// Replaces runs of the same parts by one of them with a number.
fn folded(parts: &[String]) -> Vec<String> {
    let mut folded = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let run = |period: usize| {
            let pattern = parts.get(at..at + period)?;
            let count = parts[at..].chunks_exact(period).take_while(|chunk| *chunk == pattern).count();
            (count > 1).then_some((count * period, period, count))
        };
        match (1..=PERIOD).filter_map(run).max_by_key(|(length, period, _)| (*length, usize::MAX - period)) {
            Some((length, 1, count)) => {
                folded.push(format!("{} × {count}", parts[at]));
                at += length;
            }
            Some((length, period, count)) => {
                folded.push(format!("({}) × {count}", parts[at..at + period].join(" → ")));
                at += length;
            }
            None => {
                folded.push(parts[at].clone());
                at += 1;
            }
        }
    }
    folded
}

impl HeapAnswers<'_> {
    /// The shortest path to a node; `None` if no path leads to it.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn path(&self, node: usize) -> Option<HeapPath> {
        let labels = Labels::new(self.graph);
        let mut steps = Vec::new();
        let mut at = node as u32;
        while at != 0 {
            let (edge, from) = self.reach.last_step(self.graph, at)?;
            steps.push(self.step(&labels, edge));
            at = from;
        }
        steps.reverse();
        Some(HeapPath { steps })
    }

    /// The shortest path to nodes of a type for each field or root that holds some, shortest first. Paths through another node of the
    /// type are left out.
    pub(super) fn paths_to(&self, type_id: u32, most: usize) -> Vec<HeapPath> {
        let (graph, labels, weak) = (self.graph, Labels::new(self.graph), weak(self.graph));
        let mut seen = HashSet::default();
        let mut paths = Vec::new();
        for from in reach::order(graph) {
            for edge in range(graph, from) {
                let to = graph.targets[edge].0 as usize;
                if graph.kinds_of_edges[edge] == weak || !self.is_of(to, type_id) {
                    continue;
                }
                let is_new = seen.insert((self.holder(from as usize), labels.without_index(edge)));
                if !is_new || self.leads_through(from, type_id) {
                    continue;
                }
                let Some(mut path) = self.path(from as usize) else { continue };
                path.steps.push(self.step(&labels, edge));
                paths.push(path);
                if paths.len() == most {
                    return paths;
                }
            }
        }
        paths
    }

    /// Whether the shortest path to a node leads through a node of a type, or to one.
    fn leads_through(&self, node: u32, type_id: u32) -> bool {
        let mut at = node;
        while at != 0 {
            match self.reach.last_step(self.graph, at) {
                Some((_, from)) if !self.is_of(at as usize, type_id) => at = from,
                _ => return true,
            }
        }
        false
    }

    fn step(&self, labels: &Labels<'_>, edge: usize) -> Step {
        let to = self.graph.targets[edge];
        let is_root = self.type_names.is_root(self.graph, to.0 as usize);
        let name = if is_root { self.graph.name(to) } else { self.type_of(to.0 as usize) };
        Step { label: labels.of(edge).into_owned(), name: name.to_owned(), is_root }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &str) -> String {
        folded(&parts.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" → ")
    }

    #[test]
    fn repeated_parts_appear_once() {
        assert_eq!(text("a .next .next .next .value"), "a → .next × 3 → .value");
        assert_eq!(text("a .next .value .next .value .end"), "a → (.next → .value) × 2 → .end");
        assert_eq!(text("a b c"), "a → b → c");
        assert_eq!(text("x x x x"), "x × 4");
    }
}
