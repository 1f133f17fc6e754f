//! Small blocks as groups: leaves of one type that one node holds become one node.
//!
//! A *leaf* is a node without edges. It joins a group if exactly one edge keeps it alive. Weak edges to it then lead to the
//! group. Counts of edges are taken over from the first reading; two more readings find the groups and their sizes.

use super::found::Found;
use super::groups::{GONE, Group, Groups};
use crate::fault::Fault;
use crate::heapsnapshot::group_names::group_name;
use crate::heapsnapshot::limits::LARGEST;
use crate::heapsnapshot::parts::Parts;
use foldhash::{HashMap, HashMapExt};

/// A bit for each node.
struct Bits(Vec<u64>);

impl Bits {
    fn new(nodes: usize) -> Self {
        Self(vec![0; nodes.div_ceil(64)])
    }

    fn get(&self, row: u64) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    fn set(&mut self, row: u64) {
        self.0[row as usize / 64] |= 1 << (row % 64);
    }
}

impl Parts {
    /// Finds the groups, and takes the edges to members that are not written from the counts.
    pub(super) fn group(&self, found: &mut Found) -> Result<(), Fault> {
        if !found.grouped {
            return Err(Fault::Whole(
                "the edges are not in the order of nodes: blocks cannot be grouped".into(),
            ));
        }
        let members = self.leaves_with_one_owner(&found.counts)?;
        let types = self.types()?;
        let weak = self.kind_of_edges("weak");
        let mut groups = Groups::default();
        // The first member's row in the beginning, the row in the file in the end.
        let mut rows: Vec<u32> = (0..self.nodes.count() as u32).collect();
        // Of the current owner: first member and group by type.
        let mut by_type: HashMap<u32, (u32, Option<u32>)> = HashMap::new();
        let mut owner = u64::MAX;
        self.each_edge(|edge| -> Result<(), Fault> {
            if owner != edge.from {
                owner = edge.from;
                by_type.clear();
            }
            if edge.kind == weak || !members.get(edge.to) {
                return Ok(());
            }
            let to = edge.to as u32;
            let (first, group) = by_type.entry(types[to as usize]).or_insert((to, None));
            if *first == to {
                return Ok(());
            }
            let number = *group.get_or_insert_with(|| {
                let name = types[to as usize] / self.meta.node_kinds.len() as u32;
                groups.groups.push(Group {
                    row: *first,
                    name,
                    members: 1,
                    self_size: 0,
                    unused: 0,
                    stack: None,
                    own_name: 0,
                });
                groups.groups.len() as u32 - 1
            });
            groups.groups[number as usize].members += 1;
            groups.gone += 1;
            rows[to as usize] = *first;
            found.counts[edge.from as usize] -= 1;
            Ok(())
        })?;
        drop((members, types));
        groups.groups.sort_unstable_by_key(|group| group.row);
        self.add_sizes(&rows, &mut groups.groups)?;
        self.name_groups(&mut groups)?;
        number(&mut rows);
        groups.rows = rows;
        self.continue_groups(found, &groups)?;
        found.groups = Some(groups);
        Ok(())
    }

    /// The number of a kind of edges, or one that no edge has.
    pub(super) fn kind_of_edges(&self, wanted: &str) -> u32 {
        self.meta.edge_kinds.iter().position(|kind| kind == wanted).map_or(u32::MAX, |kind| kind as u32)
    }

    /// Nodes without edges that exactly one edge keeps alive.
    fn leaves_with_one_owner(&self, counts: &[u32]) -> Result<Bits, Fault> {
        let (mut held, mut shared) = (Bits::new(counts.len()), Bits::new(counts.len()));
        let weak = self.kind_of_edges("weak");
        self.each_edge(|edge| -> Result<(), Fault> {
            if edge.kind != weak && edge.to != 0 && counts[edge.to as usize] == 0 {
                if held.get(edge.to) {
                    shared.set(edge.to);
                }
                held.set(edge.to);
            }
            Ok(())
        })?;
        for (held, shared) in held.0.iter_mut().zip(shared.0) {
            *held &= !shared;
        }
        // Roots without blocks are no blocks.
        let synthetic = self.meta.node_kinds.iter().position(|kind| kind == "synthetic");
        let mut row = 0;
        self.nodes.each(|bytes| -> Result<(), Fault> {
            if Some(self.node(row, bytes)?.kind as usize) == synthetic {
                held.0[row as usize / 64] &= !(1 << (row % 64));
            }
            row += 1;
            Ok(())
        })?;
        Ok(held)
    }

    /// Name and kind of each node as one number.
    fn types(&self) -> Result<Vec<u32>, Fault> {
        let kinds = self.meta.node_kinds.len() as u64;
        if kinds * self.strings.count > u32::MAX.into() {
            return Err(Fault::Whole("too many names and kinds for grouping blocks".into()));
        }
        let mut types = Vec::with_capacity(self.nodes.count() as usize);
        self.nodes.each(|bytes| -> Result<(), Fault> {
            let node = self.node(types.len() as u64, bytes)?;
            types.push((node.name * kinds) as u32 + node.kind);
            Ok(())
        })?;
        Ok(types)
    }

    /// `firsts` has the first member of each node's group, or the node itself. Groups are sorted by first member.
    fn add_sizes(&self, firsts: &[u32], groups: &mut [Group]) -> Result<(), Fault> {
        let mut row = 0;
        self.nodes.each(|bytes| -> Result<(), Fault> {
            let node = self.node(row, bytes)?;
            let first = firsts[row as usize];
            row += 1;
            if let Ok(group) = groups.binary_search_by_key(&first, |group| group.row) {
                let group = &mut groups[group];
                group.self_size += node.self_size;
                group.unused = group.unused.saturating_add(node.unused);
                group.stack = match group.stack {
                    Some(known) if known != node.stack => Some(0),
                    _ => Some(node.stack),
                };
            }
            Ok(())
        })
    }

    fn name_groups(&self, groups: &mut Groups) -> Result<(), Fault> {
        let mut texts: HashMap<u32, String> =
            groups.groups.iter().map(|group| (group.name, String::new())).collect();
        let mut index = 0;
        self.strings.each(|text| -> Result<(), Fault> {
            if let Some(needed) = texts.get_mut(&index) {
                *needed = String::from_utf8_lossy(text).into_owned();
            }
            index += 1;
            Ok(())
        })?;
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for group in &mut groups.groups {
            group.own_name = *known.entry((group.members, group.name)).or_insert_with(|| {
                groups.names.push(group_name(group.members, &texts[&group.name]));
                groups.names.len() as u32 - 1
            });
        }
        Ok(())
    }

    /// Groups of 4 GiB or more are continued as such blocks are.
    fn continue_groups(&self, found: &mut Found, groups: &Groups) -> Result<(), Fault> {
        found.continued.retain(|(row, _)| groups.row(*row).1);
        for group in groups.groups.iter().filter(|group| group.self_size > LARGEST) {
            let pieces = ((group.self_size - 1) / LARGEST) as u32;
            match found.continued.binary_search_by_key(&group.row, |(row, _)| *row) {
                Ok(at) => found.continued[at].1 = pieces,
                Err(at) => found.continued.insert(at, (group.row, pieces)),
            }
        }
        Ok(())
    }
}

/// Replaces first members by rows in the file, in place.
fn number(rows: &mut [u32]) {
    const FINAL: u32 = 1 << 30;
    let mut next = 0;
    for (row, first) in rows.iter_mut().enumerate() {
        if *first as usize == row {
            *first = next | FINAL;
            next += 1;
        }
    }
    for row in 0..rows.len() {
        let first = rows[row];
        rows[row] = if first & FINAL == 0 { rows[first as usize] & !FINAL & !GONE | GONE } else { first };
    }
    rows.iter_mut().for_each(|row| *row &= !FINAL);
}
