//! The text of a snapshot.

use super::found::Found;
use super::ids::Ids;
use super::stop::Stop;
use crate::heapsnapshot::addresses::AddressColumn;
use crate::heapsnapshot::error::HeapSnapshotError;
use crate::heapsnapshot::json_text;
use crate::heapsnapshot::limits::{CONTINUED, LARGEST};
use crate::heapsnapshot::part_files::EdgeRecord;
use crate::heapsnapshot::parts::Parts;
use std::io::Write;
use std::path::Path;

/// Bytes collected for one write.
const FLUSH: usize = 1 << 20;

/// The text, with what is not written yet.
pub(super) struct Text<'a> {
    path: &'a Path,
    out: &'a mut dyn Write,
    pub pending: Vec<u8>,
}

impl<'a> Text<'a> {
    pub(super) fn new(path: &'a Path, out: &'a mut dyn Write) -> Self {
        Self { path, out, pending: Vec::with_capacity(FLUSH + 1024) }
    }

    pub(super) fn literal(&mut self, text: &str) {
        self.pending.extend_from_slice(text.as_bytes());
    }

    /// Begins an item of an array after the first one.
    #[inline]
    fn begin(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.pending.extend_from_slice(b",\n");
        }
    }

    #[inline]
    fn numbers(&mut self, numbers: &[u32]) {
        for (index, number) in numbers.iter().enumerate() {
            if index > 0 {
                self.pending.push(b',');
            }
            json_text::number(&mut self.pending, *number);
        }
    }

    /// Writes rows of numbers, behind all other arrays of numbers. Nothing if there are none.
    pub(super) fn rows<const N: usize>(
        &mut self,
        key: &str,
        rows: &[[u32; N]],
    ) -> Result<(), HeapSnapshotError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.literal(&format!(",\n\"{key}\":["));
        let mut first = true;
        for row in rows {
            self.begin(&mut first);
            self.numbers(row);
            self.added()?;
        }
        self.literal("]");
        Ok(())
    }

    #[inline]
    fn added(&mut self) -> Result<(), HeapSnapshotError> {
        if self.pending.len() < FLUSH { Ok(()) } else { self.flush() }
    }

    #[cold]
    pub(super) fn flush(&mut self) -> Result<(), HeapSnapshotError> {
        let written = self.out.write_all(&self.pending);
        self.pending.clear();
        written.map_err(HeapSnapshotError::system("write", self.path))
    }
}

/// Data of nodes that the file contains after all nodes.
pub(super) struct Written {
    /// Rows with their unused bytes.
    pub with_unused: Vec<[u32; 2]>,
    /// Rows of groups with the number of their members.
    pub groups: Vec<[u32; 2]>,
    /// Where blocks are.
    pub addresses: AddressColumn,
    /// Blocks and bytes of each allocation stack.
    pub alive: Vec<(u32, u64)>,
}

impl Parts {
    pub(super) fn write_nodes(&self, found: &Found, text: &mut Text) -> Result<Written, Stop> {
        let mut sums = Written {
            with_unused: Vec::new(),
            groups: Vec::new(),
            addresses: AddressColumn::new(),
            alive: vec![(0, 0); self.stacks.len()],
        };
        let mut written = 0;
        let mut continued = found.continued.iter().peekable();
        // Id, kind, name and rest of the size of nodes of 4 GiB or more. The rows of the rest follow all others.
        let mut rests = Vec::with_capacity(found.continued.len());
        let (mut row, mut first, mut next_group) = (0_u32, true, 0);
        let remark = self.strings.count as u32 + u32::from(!found.continued.is_empty());
        let mut ids = Ids::new(self.nodes.count());
        let has_addresses = self.have_addresses();
        let mut write = |text: &mut Text, id: u64, [kind, name, size, edges, stack]: [u32; 5]| {
            let id = ids.take(id);
            text.begin(&mut first);
            text.numbers(&[kind, name, id, size, edges, stack, 0]);
            text.added().map(|()| id)
        };
        self.nodes.each(|bytes| -> Result<(), Stop> {
            let node = self.node(row.into(), bytes)?;
            let (mut name, mut self_size) = (node.name as u32, node.self_size);
            let (mut unused, mut stack) = (node.unused, node.stack);
            let mut address = node.address().filter(|_| has_addresses);
            let mut edges = found.counts.get(row as usize).copied().unwrap_or(0);
            if let Some(groups) = &found.groups {
                if row == 0 {
                    name = remark;
                } else if let Some(group) = groups.at(row, &mut next_group) {
                    (name, self_size) = (remark + 1 + group.own_name, group.self_size);
                    unused = group.unused;
                    sums.groups.push([written, group.members]);
                    address = None;
                    stack = group.stack.unwrap_or(0);
                } else if !groups.row(row).1 {
                    row += 1;
                    return Ok(());
                }
            }
            let size = self_size.min(LARGEST);
            if let Some((_, pieces)) = continued.next_if(|(at, _)| *at == row) {
                edges += pieces;
                rests.push((node.id, node.kind, name, self_size - size));
            }
            let id = write(text, node.id, [node.kind, name, size as u32, edges, stack])?;
            sums.addresses.push(written, address, id);
            if unused > 0 {
                sums.with_unused.push([written, unused]);
            }
            let (count, size) = &mut sums.alive[stack as usize];
            *count += 1;
            *size = size.saturating_add(self_size);
            row += 1;
            written += 1;
            Ok(())
        })?;
        if !rests.is_empty() {
            sums.addresses.push(written, None, 0);
        }
        for (id, kind, name, mut rest) in rests {
            while rest > 0 {
                let size = rest.min(LARGEST);
                write(text, id, [kind, name, size as u32, 0, 0])?;
                rest -= size;
            }
        }
        Ok(sums)
    }

    pub(super) fn write_edges_in_order(&self, found: &Found, text: &mut Text) -> Result<(), Stop> {
        let mut edges = EdgeText::new(self, found, text);
        let weak = self.kind_of_edges("weak");
        self.each_edge(|edge| -> Result<(), Stop> {
            edges.continue_up_to(edge.from as u32)?;
            if let Some(to) = found.target(&edge, weak) {
                edges.edge(&WrittenEdge { to, ..WrittenEdge::from(&edge) })?;
            }
            Ok(())
        })?;
        Ok(edges.continue_up_to(u32::MAX)?)
    }

    pub(super) fn write_strings(&self, found: &Found, text: &mut Text) -> Result<(), Stop> {
        let mut first = true;
        self.strings.each(|string| -> Result<(), Stop> {
            text.begin(&mut first);
            text.pending.push(b'"');
            if json_text::gets_space(string) {
                text.pending.push(b' ');
            }
            json_text::contents(&mut text.pending, string);
            text.pending.push(b'"');
            Ok(text.added()?)
        })?;
        if !found.continued.is_empty() {
            text.begin(&mut first);
            json_text::string(&mut text.pending, CONTINUED.as_bytes());
        }
        if let Some(groups) = &found.groups {
            for name in std::iter::once(&groups.remark()).chain(&groups.names) {
                text.begin(&mut first);
                json_text::string(&mut text.pending, name.as_bytes());
                text.added()?;
            }
        }
        Ok(())
    }
}

/// An edge as it is written, without the node where it begins.
#[derive(Clone, Copy, Default)]
pub(super) struct WrittenEdge {
    kind: u32,
    name_or_index: u32,
    to: u32,
}

impl From<&EdgeRecord> for WrittenEdge {
    fn from(edge: &EdgeRecord) -> Self {
        // Only an index of an element can have more than 32 bits.
        let name_or_index = edge.name_or_index.min(u32::MAX.into()) as u32;
        Self { kind: edge.kind, name_or_index, to: edge.to as u32 }
    }
}

/// Writes edges, grouped by the node where they begin.
pub(super) struct EdgeText<'a, 'b> {
    text: &'a mut Text<'b>,
    first: bool,
    /// Nodes of 4 GiB or more that are still to come, and how many nodes carry the rest of their size.
    continued: std::iter::Peekable<std::slice::Iter<'a, (u32, u32)>>,
    /// The next node that carries a rest.
    next: u32,
    continued_kind: u32,
    continued_name: u32,
}

impl<'a, 'b> EdgeText<'a, 'b> {
    pub(super) fn new(parts: &Parts, found: &'a Found, text: &'a mut Text<'b>) -> Self {
        let gone = found.groups.as_ref().map_or(0, |groups| groups.gone);
        Self {
            text,
            first: true,
            continued: found.continued.iter().peekable(),
            next: (parts.nodes.count() - gone) as u32,
            continued_kind: parts.meta.edge_kinds.iter().position(|kind| kind == "internal").unwrap_or(0)
                as u32,
            continued_name: parts.strings.count as u32,
        }
    }

    /// Writes the edges to rests of sizes of all nodes up to this one.
    #[inline]
    pub(super) fn continue_up_to(&mut self, row: u32) -> Result<(), HeapSnapshotError> {
        while let Some((_, pieces)) = self.continued.next_if(|(at, _)| *at <= row) {
            for _ in 0..*pieces {
                let (kind, name_or_index, to) = (self.continued_kind, self.continued_name, self.next);
                self.edge(&WrittenEdge { kind, name_or_index, to })?;
                self.next += 1;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn edge(&mut self, edge: &WrittenEdge) -> Result<(), HeapSnapshotError> {
        self.text.begin(&mut self.first);
        self.text.numbers(&[edge.kind, edge.name_or_index, 7 * edge.to]);
        self.text.added()
    }
}
