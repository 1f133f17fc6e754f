//! The first reading of part files: checks every record, and counts the edges of each node.

use crate::fault::Fault;
use crate::heapsnapshot::limits::{LARGEST, MOST_BYTES};
use crate::heapsnapshot::part_files::{EdgeRecord, NodeRecord};
use crate::heapsnapshot::parts::Parts;

impl Parts {
    /// Calls a function for each edge, in the order of the file.
    pub(in crate::heapsnapshot) fn each_edge<E: From<Fault>>(
        &self,
        mut visit: impl FnMut(EdgeRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut row = 0;
        self.edges.each(|bytes| {
            let edge = self.edge(row, bytes)?;
            row += 1;
            visit(edge)
        })
    }

    fn edge(&self, row: u64, bytes: &[u8]) -> Result<EdgeRecord, Fault> {
        let edge = EdgeRecord::read(bytes);
        let nodes = self.nodes.count();
        let Some(numbered) = self.numbered.get(edge.kind as usize) else {
            return self.edges.fault(row, format!("edge {row} has an unknown kind, {}", edge.kind));
        };
        if edge.from >= nodes || edge.to >= nodes {
            let (from, to) = (edge.from, edge.to);
            return self.edges.fault(row, format!("edge {row} joins nodes {from} and {to} of {nodes}"));
        }
        if !numbered && edge.name_or_index >= self.strings.count {
            let (name, strings) = (edge.name_or_index, self.strings.count);
            return self.edges.fault(row, format!("edge {row} has name {name} of {strings}"));
        }
        Ok(edge)
    }

    /// Edges that begin at each node, and whether they are in the order of nodes.
    pub(in crate::heapsnapshot) fn count_edges(&self) -> Result<(Vec<u32>, bool), Fault> {
        let nodes = self.nodes.count() as usize;
        let mut counts = vec![0_u32; nodes];
        let mut incoming = vec![0_u64; nodes.div_ceil(64)];
        let (mut grouped, mut last) = (true, 0);
        self.each_edge(|edge| -> Result<(), Fault> {
            counts[edge.from as usize] += 1;
            incoming[edge.to as usize / 64] |= 1 << (edge.to % 64);
            grouped &= edge.from >= last;
            last = edge.from;
            Ok(())
        })?;
        incoming[0] |= 1;
        let missing: u64 =
            nodes as u64 - incoming.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
        if missing > 0 {
            let without = |row: &usize| incoming[row / 64] >> (row % 64) & 1 == 0;
            let rows: Vec<String> = (0..nodes).filter(without).take(5).map(|row| row.to_string()).collect();
            let more = if missing > 5 { ", …" } else { "" };
            return Err(Fault::Whole(format!(
                "{missing} nodes have no incoming edges: {}{more}",
                rows.join(", ")
            )));
        }
        Ok((counts, grouped))
    }

    pub(in crate::heapsnapshot) fn node(&self, row: u64, bytes: &[u8]) -> Result<NodeRecord, Fault> {
        let node = NodeRecord::read(bytes);
        if node.kind as usize >= self.meta.node_kinds.len() {
            return self.nodes.fault(row, format!("node {row} has an unknown kind, {}", node.kind));
        }
        if node.name >= self.strings.count {
            let (name, strings) = (node.name, self.strings.count);
            return self.nodes.fault(row, format!("node {row} has name {name} of {strings}"));
        }
        // Julia writes no traces.
        if !self.stacks.has(node.stack) || node.detachedness != 0 {
            return self.nodes.fault(row, format!("node {row} has a trace or a detachedness"));
        }
        Ok(node)
    }

    /// Adds the size of a node to the sum, which stays that of a process.
    pub(in crate::heapsnapshot) fn add_size(
        &self,
        row: u64,
        node: &NodeRecord,
        sum: &mut u64,
    ) -> Result<(), Fault> {
        *sum = sum.saturating_add(node.self_size);
        if *sum > MOST_BYTES {
            return self.nodes.fault(row, "the sizes add up to more than 256 TiB");
        }
        Ok(())
    }

    /// The sum of sizes, and the nodes of 4 GiB or more.
    pub(in crate::heapsnapshot) fn check_nodes(&self) -> Result<(u64, Vec<(u32, u32)>), Fault> {
        let (mut row, mut sum) = (0, 0_u64);
        let mut continued = Vec::new();
        self.nodes.each(|bytes| -> Result<(), Fault> {
            let node = self.node(row, bytes)?;
            self.add_size(row, &node, &mut sum)?;
            if node.self_size > LARGEST {
                continued.push((row as u32, ((node.self_size - 1) / LARGEST) as u32));
            }
            row += 1;
            Ok(())
        })?;
        Ok((sum, continued))
    }
}
