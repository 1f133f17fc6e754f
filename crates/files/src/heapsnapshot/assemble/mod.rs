//! Makes one `.heapsnapshot` of four part files, in memory of at most 16 bytes for each node.
//!
//! The file needs the number of edges of each node before any edge, and the edges in the order of nodes. The parts are
//! therefore read twice. Four bytes for each node hold its count of edges. Edges in another order are placed into a
//! buffer of limited size, range by range of nodes, with one more reading for each range.

mod check;
mod group;
mod ids;
mod sort;
mod text;

use super::allocation_stacks::{FUNCTIONS, STACKS, Stacks};
use super::error::{Fault, HeapSnapshotError};
use super::json::Scanner;
use super::meta::{GROUPS, Meta, UNUSED};
use super::part_files::{EDGES, METADATA, NODES, PartFile, Records, STRINGS, open, part};
use super::part_strings::Strings;
use super::{MOST_NODES, parts_writer::too_many_nodes};
use crate::whole::write_whole_at_most;
use check::Found;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use text::Text;

/// The largest size of a node. Readers keep 32 bits.
const LARGEST: u64 = u32::MAX as u64;

/// Larger sums of sizes are not those of a process.
const MOST_BYTES: u64 = 1 << 48;

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

/// The part files of one snapshot.
pub(super) struct Parts {
    pub meta: Meta,
    pub nodes: Records,
    pub edges: Records,
    pub strings: Strings,
    pub stacks: Stacks,
    /// By kind of edge: whether its label is a number.
    numbered: Vec<bool>,
}

impl Parts {
    pub(super) fn open(prefix: &Path) -> Result<Self, HeapSnapshotError> {
        let path = part(prefix, METADATA);
        let file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => HeapSnapshotError::invalid(
                &path,
                "there is no such file, which is written last: the snapshot is incomplete, or the prefix is wrong",
            ),
            _ => HeapSnapshotError::system("open", &path)(error),
        })?;
        let (meta, stacks) = read_metadata(file).map_err(|fault| fault.of(&path))?;
        Self::new(&path, meta, stacks, open(prefix, NODES)?, open(prefix, EDGES)?, open(prefix, STRINGS)?)
    }

    /// Checks that viewers can hold the numbers of nodes and edges in the metadata at `path`.
    fn check(path: &Path, meta: &Meta) -> Result<(), HeapSnapshotError> {
        let wrong = |what: String| Err(HeapSnapshotError::invalid(path, what));
        if meta.node_count == 0 {
            return wrong("a snapshot without nodes".into());
        }
        if meta.node_count > MOST_NODES.into() {
            return wrong(too_many_nodes());
        }
        if meta.edge_count > u64::from(u32::MAX / 3) {
            return wrong(format!("more than {} edges, which no reader can hold", u32::MAX / 3));
        }
        Ok(())
    }

    /// Part files that may have no names yet. `path` is that of the metadata, for messages.
    pub(super) fn new(
        path: &Path,
        meta: Meta,
        stacks: Stacks,
        nodes: PartFile,
        edges: PartFile,
        strings: PartFile,
    ) -> Result<Self, HeapSnapshotError> {
        Self::check(path, &meta)?;
        let nodes = Records::nodes(nodes, meta.node_count)?;
        let edges = Records::edges(edges, meta.edge_count)?;
        let numbered = meta.edge_kinds.iter().map(|kind| matches!(&**kind, "element" | "hidden")).collect();
        let strings = Strings::new(strings)?;
        if !stacks.is_sound(strings.count) {
            return Err(HeapSnapshotError::invalid(path, "damaged allocation stacks"));
        }
        Ok(Self { meta, nodes, edges, strings, stacks, numbered })
    }

    /// Writes the snapshot `out`, which appears when it is complete.
    pub(super) fn write(&self, out: &Path, options: AssembleOptions) -> Result<Assembled, HeapSnapshotError> {
        let mut result = Err(HeapSnapshotError::invalid(out, "not written"));
        let written = write_whole_at_most(out, 0o600, |file| {
            result = self.assemble(out, file, options);
            match result {
                Ok(_) => Ok(()),
                Err(_) => Err(io::ErrorKind::Other.into()),
            }
        });
        let assembled = result?;
        written.map_err(HeapSnapshotError::system("write", out))?;
        Ok(assembled)
    }

    fn assemble(
        &self,
        path: &Path,
        out: &mut dyn Write,
        options: AssembleOptions,
    ) -> Result<Assembled, HeapSnapshotError> {
        let (counts, grouped) = self.count_edges().map_err(|fault| fault.of(&self.edges.path))?;
        let (self_size, continued) = self.check_nodes().map_err(|fault| fault.of(&self.nodes.path))?;
        let mut found = Found { counts, grouped, continued, self_size, groups: None };
        if options.group_small {
            self.group(&mut found).map_err(|fault| fault.of(&self.edges.path))?;
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
        let written = self.write_nodes(&found, &mut text).map_err(|stop| stop.of(&self.nodes.path))?;
        text.literal("],\n\"edges\":[");
        let written_edges = match found.grouped {
            true => self.write_edges_in_order(&found, &mut text),
            false => self.write_edges_sorted(&found, &mut text),
        };
        written_edges.map_err(|stop| stop.of(&self.edges.path))?;
        text.literal("],\n\"trace_function_infos\":[");
        self.stacks.write_functions(&mut text.pending);
        text.literal("],\n\"trace_tree\":[");
        self.stacks.write_tree(&written.alive, &mut text.pending);
        text.literal("],\n\"samples\":[],\n\"locations\":[]");
        text.rows(UNUSED, &written.with_unused)?;
        text.rows(GROUPS, &written.groups)?;
        text.literal(",\n\"strings\":[");
        self.write_strings(&found, &mut text).map_err(|stop| stop.of(&self.strings.path))?;
        text.literal("]}\n");
        text.flush()?;
        Ok(Assembled { nodes, edges, self_size: found.self_size })
    }
}

fn read_metadata(file: File) -> Result<(Meta, Stacks), Fault> {
    let mut json = Scanner::new(file);
    let (mut first, mut meta, mut stacks) = (true, None, Stacks::default());
    json.expect(b'{')?;
    while let Some(key) = json.key(&mut first)? {
        match key.as_str() {
            "snapshot" => meta = Some(Meta::read(&mut json)?),
            FUNCTIONS => stacks.read_functions(&mut json)?,
            STACKS => stacks.read_flat(&mut json)?,
            _ => json.skip()?,
        }
    }
    json.finish()?;
    let meta =
        meta.ok_or_else(|| Fault::Whole("has no \"snapshot\": it is no metadata of a heap snapshot".into()))?;
    Ok((meta, stacks))
}

/// Why a reading with output ends early.
enum Stop {
    Read(Fault),
    Written(HeapSnapshotError),
}

impl Stop {
    /// The error, where a fault is one of this file.
    fn of(self, path: &Path) -> HeapSnapshotError {
        match self {
            Self::Read(fault) => fault.of(path),
            Self::Written(error) => error,
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Read(fault)
    }
}

impl From<HeapSnapshotError> for Stop {
    fn from(error: HeapSnapshotError) -> Self {
        Self::Written(error)
    }
}
