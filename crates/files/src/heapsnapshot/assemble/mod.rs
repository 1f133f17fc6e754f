//! Makes one `.heapsnapshot` of four part files, in memory of at most 16 bytes for each node.
//!
//! The file needs the number of edges of each node before any edge, and the edges in the order of nodes. The parts are
//! therefore read twice. Four bytes for each node hold its count of edges. Edges in another order are placed into a
//! buffer of limited size, range by range of nodes, with one more reading for each range.

mod check;
mod found;
mod group;
mod groups;
mod ids;
mod sort;
mod stop;
mod text;

use super::addresses::{ADDRESSES, REGIONS};
use super::error::HeapSnapshotError;
use super::limits::{MOST_NODES, too_many_nodes};
use super::meta::{GROUPS, Meta, UNUSED};
use super::parts::Parts;
use crate::atomic_write::write_atomically_with_mode;
use found::Found;
use std::io::{self, Write};
use std::path::Path;
use text::Text;

/// What was assembled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Assembled {
    /// Nodes in the file.
    pub nodes: u64,
    /// Edges in the file.
    pub edges: u64,
    /// Sum of the nodes' own sizes, in bytes.
    pub self_size: u64,
}

/// How a snapshot is assembled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AssembleOptions {
    /// Make one node of all leaves of one type that one node holds, for viewers that cannot hold all nodes. Such a node has
    /// the sum of their sizes, and a name such as `5 012 × [u8]`; see [`grouped_blocks`](super::grouped_blocks). The name of
    /// the root then says so. Needs some 24 bytes for each node.
    pub group_small: bool,
}

/// Makes the snapshot `out` of the part files with this prefix, which stay.
///
/// The file has no name, or a hidden one in the same folder, until it is complete. An existing file stays until then. A new file
/// has mode 0600.
///
/// # Errors
/// If the parts are missing, damaged or inconsistent, or if the system refuses.
pub fn assemble(prefix: &Path, out: &Path) -> Result<Assembled, HeapSnapshotError> {
    assemble_with(prefix, out, AssembleOptions::default())
}

/// As [`assemble`], with options.
///
/// # Errors
/// As [`assemble`]. Blocks can be grouped only if the edges in the parts are in the order of nodes, as those of
/// [`PartsWriter`](super::PartsWriter) are.
pub fn assemble_with(
    prefix: &Path,
    out: &Path,
    options: AssembleOptions,
) -> Result<Assembled, HeapSnapshotError> {
    Parts::open(prefix)?.write(out, options)
}

/// As [`assemble`], to a writer, which receives an incomplete snapshot if writing fails half way. Damaged parts are
/// noticed before the first byte.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_to(
    prefix: &Path,
    out: &mut dyn Write,
    options: AssembleOptions,
) -> Result<Assembled, HeapSnapshotError> {
    Parts::open(prefix)?.assemble(Path::new("the snapshot"), out, options)
}

impl Parts {
    /// Writes the snapshot `out`, which appears when it is complete.
    pub(super) fn write(&self, out: &Path, options: AssembleOptions) -> Result<Assembled, HeapSnapshotError> {
        // Of the snapshot; the file may be refused before it begins, or after it is complete.
        let mut result = None;
        let written = write_atomically_with_mode(out, 0o600, |file| {
            let assembled = self.assemble(out, file, options);
            let is_written = assembled.is_ok();
            result = Some(assembled);
            if is_written { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        });
        match (result, written) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(assembled)), Ok(())) => Ok(assembled),
            (_, Err(error)) => Err(HeapSnapshotError::system("write", out)(error)),
            (None, Ok(())) => Err(HeapSnapshotError::invalid(out, "the snapshot was not written")),
        }
    }

    fn assemble(
        &self,
        path: &Path,
        out: &mut dyn Write,
        options: AssembleOptions,
    ) -> Result<Assembled, HeapSnapshotError> {
        let (counts, grouped) = self.count_edges().map_err(|fault| fault.in_file(&self.edges.path))?;
        let (self_size, continued) = self.check_nodes().map_err(|fault| fault.in_file(&self.nodes.path))?;
        let mut found = Found { counts, grouped, continued, self_size, groups: None };
        if options.group_small {
            self.group(&mut found).map_err(|fault| fault.in_file(&self.edges.path))?;
        }
        let gone = found.groups.as_ref().map_or(0, |groups| groups.gone);
        let pieces: u64 = found.continued.iter().map(|(_, pieces)| u64::from(*pieces)).sum();
        let nodes = self.nodes.count() - gone + pieces;
        if nodes > MOST_NODES.into() {
            return Err(HeapSnapshotError::invalid(&self.nodes.path, too_many_nodes()));
        }
        let edges = self.edges.count() - gone + pieces;
        let meta = Meta {
            node_kinds: self.meta.node_kinds.clone(),
            edge_kinds: self.meta.edge_kinds.clone(),
            node_count: nodes,
            edge_count: edges,
            function_count: self.stacks.function_count(),
            assembled_here: true,
            ..Meta::default()
        };
        let mut text = Text::new(path, out);
        meta.write(&mut text.pending);
        text.literal(",\n\"nodes\":[");
        let written = self.write_nodes(&found, &mut text).map_err(|stop| stop.in_file(&self.nodes.path))?;
        text.literal("],\n\"edges\":[");
        let written_edges = match found.grouped {
            true => self.write_edges_in_order(&found, &mut text),
            false => self.write_edges_sorted(&found, &mut text),
        };
        written_edges.map_err(|stop| stop.in_file(&self.edges.path))?;
        text.literal("],\n\"trace_function_infos\":[");
        self.stacks.write_functions(&mut text.pending);
        text.literal("],\n\"trace_tree\":[");
        self.stacks.write_tree(&written.alive, &mut text.pending);
        text.literal("],\n\"samples\":[],\n\"locations\":[]");
        text.rows(UNUSED, &written.with_unused)?;
        text.rows(GROUPS, &written.groups)?;
        text.rows(REGIONS, &written.addresses.regions)?;
        text.rows(ADDRESSES, &written.addresses.others)?;
        text.literal(",\n\"strings\":[");
        self.write_strings(&found, &mut text).map_err(|stop| stop.in_file(&self.strings.path))?;
        text.literal("]}\n");
        text.flush()?;
        Ok(Assembled { nodes, edges, self_size: found.self_size })
    }
}
