//! Variables that hold several blocks of their own: the chunks of a queue, both ends of a map.
//!
//! Such a variable is one holder, not one for each block. A static or thread-local variable is a node, and what it alone holds is
//! below it in the dominator tree. Local variables are edges of their frame: a block belongs to a local variable if all paths
//! from the frame to it begin with that variable.

use super::edges::range;
use super::{HeapAnswers, HeapPath, Step};
use foldhash::HashMap;
use stackglass_profile::heap_graph::{EdgeKind, NodeIndex};

/// Several blocks that one variable alone holds.
pub(super) struct Variable {
    /// The static or thread-local variable, or the frame.
    pub root: u32,
    /// The name of the local variable, if it is one.
    pub local: Option<Box<str>>,
    /// Number of blocks, with all that they alone hold.
    pub count: u64,
    /// Their bytes.
    pub size: u64,
}

/// What lies directly below a root in the dominator tree.
pub(super) struct Below {
    pub variables: Vec<Variable>,
    /// Places of the other blocks.
    pub blocks: Vec<usize>,
}

/// To which local variable a block belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Unknown,
    Local(u32),
    /// Several variables, or words without a name.
    Several,
}

impl Owner {
    fn with(self, other: Owner) -> Owner {
        match (self, other) {
            (Owner::Unknown, owner) | (owner, Owner::Unknown) => owner,
            (one, other) if one == other => one,
            _ => Owner::Several,
        }
    }
}

impl HeapAnswers<'_> {
    /// What the root at a place of the dominator tree holds, if it is a variable or a frame that holds several blocks.
    pub(super) fn below_variable(&self, place: usize) -> Option<Below> {
        let tree = &self.dominators;
        let root = tree.preorder[place];
        let children: Vec<usize> = tree.children(place).take(2).collect();
        let is_block = |place: &usize| !self.type_names.is_root(self.graph, tree.preorder[*place] as usize);
        if children.len() < 2 || !children.iter().all(is_block) {
            return None;
        }
        let name = self.graph.name(NodeIndex(root));
        let (group, owner) = self.group_of(root)?;
        match group {
            "(static data)" | "(thread locals)" if !name.starts_with('(') && owner != "(other memory)" => {
                let count = tree.blocks(root as usize) - 1;
                let size = tree.retained[root as usize];
                let variable = Variable { root, local: None, count, size };
                Some(Below { variables: vec![variable], blocks: Vec::new() })
            }
            "(thread stacks)" => Some(self.locals_of(place)),
            _ => None,
        }
    }

    /// The path to a variable.
    pub(super) fn path_to_variable(&self, variable: &Variable) -> HeapPath {
        let mut path = self.path(variable.root as usize).unwrap_or_default();
        if let Some(local) = &variable.local {
            path.steps.push(Step { label: format!(".{local}"), name: local.to_string(), is_root: true });
        }
        path
    }

    /// The names of the two nodes above a root: its group, and its module or thread.
    fn group_of(&self, root: u32) -> Option<(&str, &str)> {
        let above = |node| {
            let (_, from) = self.reach.last_step(self.graph, node)?;
            (from != 0).then_some(from)
        };
        let owner = above(root)?;
        let group = above(owner)?;
        Some((self.graph.name(NodeIndex(group)), self.graph.name(NodeIndex(owner))))
    }

    /// The local variables of the frame at a place. Those that hold one block are not listed, only the block.
    fn locals_of(&self, place: usize) -> Below {
        let (graph, tree) = (self.graph, &self.dominators);
        let frame = tree.preorder[place];
        let places: Vec<usize> = tree.children(place).collect();
        let heads: HashMap<u32, u32> = places.iter().map(|place| tree.preorder[*place]).zip(0..).collect();
        let mut numbers: HashMap<&str, u32> = HashMap::default();
        let mut owners = vec![Owner::Unknown; places.len()];
        for edge in range(graph, frame) {
            let head = self.holding.target(frame, edge).and_then(|to| heads.get(&to));
            let Some(head) = head else { continue };
            let owner = match graph.kinds_of_edges[edge] == EdgeKind::Property as u8 {
                true => {
                    let label = &*graph.strings[graph.names_of_edges[edge] as usize];
                    let local = label.split(['.', '[']).next().unwrap_or_default();
                    let next = numbers.len() as u32;
                    Owner::Local(*numbers.entry(local).or_insert(next))
                }
                false => Owner::Several,
            };
            owners[*head as usize] = owners[*head as usize].with(owner);
        }
        if !numbers.is_empty() {
            self.spread(&places, &heads, &mut owners);
        }
        let mut names: Vec<&str> = vec![""; numbers.len()];
        numbers.into_iter().for_each(|(name, number)| names[number as usize] = name);
        let mut of_locals: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
        let mut below = Below { variables: Vec::new(), blocks: Vec::new() };
        for (place, owner) in places.into_iter().zip(owners) {
            match owner {
                Owner::Local(number) => of_locals[number as usize].push(place),
                _ => below.blocks.push(place),
            }
        }
        for (name, places) in names.into_iter().zip(of_locals) {
            if let [_] = places[..] {
                below.blocks.extend(places);
                continue;
            }
            if places.is_empty() {
                continue;
            }
            let nodes = places.iter().map(|place| tree.preorder[*place] as usize);
            let (count, size) = nodes.fold((0, 0_u64), |(count, size), node| {
                (count + tree.blocks(node), size.saturating_add(tree.retained[node]))
            });
            below.variables.push(Variable { root: frame, local: Some(name.into()), count, size });
        }
        below
    }

    /// Blocks at the same level may hold each other: the owner of one also owns those to which it leads.
    fn spread(&self, places: &[usize], heads: &HashMap<u32, u32>, owners: &mut [Owner]) {
        let (graph, tree) = (self.graph, &self.dominators);
        let mut edges = Vec::new();
        for (place, head) in places.iter().zip(0_u32..) {
            for node in &tree.preorder[*place..tree.end(*place)] {
                let targets = range(graph, *node).filter_map(|edge| self.holding.target(*node, edge));
                let others = targets.filter_map(|to| heads.get(&to)).filter(|other| **other != head);
                edges.extend(others.map(|other| (head, *other)));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let known = |head: &u32| owners[*head as usize] != Owner::Unknown;
        let mut pending: Vec<u32> = (0..owners.len() as u32).filter(known).collect();
        // An owner changes at most twice.
        while let Some(head) = pending.pop() {
            let first = edges.partition_point(|(from, _)| *from < head);
            for (_, to) in edges[first..].iter().take_while(|(from, _)| *from == head) {
                let owner = owners[*to as usize].with(owners[head as usize]);
                if owner != owners[*to as usize] {
                    owners[*to as usize] = owner;
                    pending.push(*to);
                }
            }
        }
    }
}
