//! Groups of small blocks are nodes with names such as `5 012 × [u8]` in a file, for viewers. In a graph they have the type as
//! their name, and the number of blocks beside it, so that sums by type are those of a snapshot without groups.

use super::super::group_names::grouped_blocks;
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::heap_graph::{HeapGraph, NameId};

/// Names groups by their type. A group whose name does not agree with its number of blocks is a single block.
pub(super) fn name_by_type(graph: &mut HeapGraph) {
    let mut names: HashMap<Box<str>, NameId> = HashMap::new();
    let groups: Vec<usize> = (0..graph.members.len()).filter(|node| graph.members[*node] != 1).collect();
    if !groups.is_empty() {
        names.extend(graph.strings.iter().zip(0..).map(|(text, id)| (text.clone(), NameId(id))));
    }
    for node in groups {
        let text = &graph.strings[graph.names[node].0 as usize];
        match grouped_blocks(text).filter(|(members, _)| *members == graph.members[node].into()) {
            None => graph.members[node] = 1,
            Some((_, name)) => {
                let name: Box<str> = name.into();
                graph.names[node] = *names.entry(name.clone()).or_insert_with(|| {
                    graph.strings.push(name);
                    NameId(graph.strings.len() as u32 - 1)
                });
            }
        }
    }
}
