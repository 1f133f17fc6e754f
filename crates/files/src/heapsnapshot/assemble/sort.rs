//! Edges in any order, written in the order of the nodes where they begin.

use super::found::Found;
use super::stop::Stop;
use super::text::{EdgeText, Text, WrittenEdge};
use crate::fault::Fault;
use crate::heapsnapshot::parts::Parts;

/// Edges of twelve bytes that are sorted at once, or half as many as there are nodes, if that is more.
const SORTED_AT_ONCE: usize = 4 << 20;

impl Parts {
    pub(super) fn write_edges_sorted(&self, found: &Found, text: &mut Text) -> Result<(), Stop> {
        self.write_edges_in_ranges(found, text, (found.counts.len() / 2).max(SORTED_AT_ONCE))
    }

    /// Writes them range by range of nodes, with at most this many edges in a range, or those of one node.
    fn write_edges_in_ranges(&self, found: &Found, text: &mut Text, most: usize) -> Result<(), Stop> {
        let counts = found.counts.as_slice();
        let mut edges = EdgeText::new(self, found, text);
        let mut placed: Vec<WrittenEdge> = Vec::new();
        // Of each node in the range: the place of its next edge.
        let mut next: Vec<u32> = Vec::new();
        let mut start = 0;
        while start < counts.len() {
            next.clear();
            let mut total = 0;
            for count in &counts[start..] {
                let after = total + *count as usize;
                if after > most && !next.is_empty() {
                    break;
                }
                next.push(total as u32);
                total = after;
            }
            let range = start..start + next.len();
            start = range.end;
            if total > most {
                self.write_edges_of(range.start as u32, &mut edges)?;
                continue;
            }
            placed.clear();
            placed.resize(total, WrittenEdge::default());
            self.each_edge(|edge| -> Result<(), Fault> {
                if range.contains(&(edge.from as usize)) {
                    let at = &mut next[edge.from as usize - range.start];
                    let Some(place) = placed.get_mut(*at as usize) else {
                        return Err(Fault::Whole("changed while it was read".into()));
                    };
                    *place = WrittenEdge::from(&edge);
                    *at += 1;
                }
                Ok(())
            })?;
            let mut rest = placed.as_slice();
            for node in range {
                edges.continue_up_to(node as u32)?;
                let (own, others) = rest.split_at(counts[node] as usize);
                rest = others;
                for edge in own {
                    edges.edge(edge)?;
                }
            }
        }
        Ok(edges.continue_up_to(u32::MAX)?)
    }

    /// Writes the edges of one node that has too many for the buffer.
    fn write_edges_of(&self, node: u32, edges: &mut EdgeText) -> Result<(), Stop> {
        edges.continue_up_to(node)?;
        self.each_edge(|edge| -> Result<(), Stop> {
            if edge.from == u64::from(node) {
                edges.edge(&WrittenEdge::from(&edge))?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heapsnapshot::PartsWriter;
    use crate::heapsnapshot::part_files::part;
    use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NodeIndex, NodeKind};
    use std::path::Path;

    /// Edges of some nodes, of which one has many and some have none or are of 4 GiB, backwards.
    fn parts(folder: &Path) -> Parts {
        let prefix = folder.join("x");
        let mut parts = PartsWriter::create(&prefix).unwrap();
        let name = parts.name("");
        for row in 0..50_u64 {
            parts.node(NodeKind::Synthetic, name, row, if row % 10 == 3 { 5 << 30 } else { 1 }).unwrap();
        }
        for row in 0..50_u32 {
            let count = if row == 30 { 100 } else { row % 4 };
            for edge in 0..count.max(1) {
                let to = NodeIndex((row + edge + 1) % 50);
                parts.edge(NodeIndex(row), to, EdgeKind::Element, 1000 * row + edge).unwrap();
            }
        }
        parts.finish().unwrap();
        let path = part(&prefix, ".edges");
        let bytes = std::fs::read(&path).unwrap();
        let mut edges: Vec<&[u8]> = bytes.chunks(25).collect();
        // The order of the edges of a node stays.
        edges.sort_by_key(|edge| std::cmp::Reverse(edge[9]));
        std::fs::write(&path, edges.concat()).unwrap();
        Parts::open(&prefix).unwrap()
    }

    #[test]
    fn ranges_of_any_size_give_the_same_text() {
        let folder = tempfile::tempdir().unwrap();
        let parts = parts(folder.path());
        let (counts, grouped) = parts.count_edges().unwrap();
        let (self_size, continued) = parts.check_nodes().unwrap();
        assert!(!grouped && continued.len() == 5);
        let found = Found { counts, grouped, continued, self_size, groups: None };
        let written = |most: usize| {
            let (mut out, path) = (Vec::new(), Path::new("x"));
            let mut text = Text::new(path, &mut out);
            assert!(parts.write_edges_in_ranges(&found, &mut text, most).is_ok());
            text.flush().unwrap();
            String::from_utf8(out).unwrap()
        };
        let all = written(usize::MAX);
        let labels: Vec<u32> = all
            .lines()
            .map(|edge| edge.split(',').collect::<Vec<_>>())
            .filter(|fields| fields[0] == "1")
            .map(|fields| fields[1].parse().unwrap())
            .collect();
        assert!(labels.is_sorted() && labels.len() as u64 == parts.edges.count());
        assert_eq!(all.lines().count(), labels.len() + 5);
        for most in [0, 1, 2, 7, 99, 100, 101] {
            assert_eq!(written(most), all, "ranges of {most} edges");
        }
    }
}
