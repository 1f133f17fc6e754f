//! Edges in any order, written in the order of the nodes where they begin.

use super::check::Found;
use super::text::{EdgeText, Text, WrittenEdge};
use super::{Parts, Stop};
use crate::heapsnapshot::error::Fault;

/// Edges of twelve bytes that are sorted at once, or half as many as there are nodes, if that is more.
const SORTED_AT_ONCE: usize = 4 << 20;

impl Parts {
    pub(super) fn write_edges_sorted(&self, found: &Found, text: &mut Text) -> Result<(), Stop> {
        let counts = found.counts.as_slice();
        let most = (counts.len() / 2).max(SORTED_AT_ONCE);
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
            let mut row = 0;
            self.edges.each(|bytes| -> Result<(), Fault> {
                let edge = self.edge(row, bytes)?;
                row += 1;
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
        let mut row = 0;
        self.edges.each(|bytes| -> Result<(), Stop> {
            let edge = self.edge(row, bytes)?;
            row += 1;
            if edge.from == u64::from(node) {
                edges.edge(&WrittenEdge::from(&edge))?;
            }
            Ok(())
        })
    }
}
