//! The four part files of one snapshot, opened together.

use super::allocation_stacks::{FUNCTIONS, STACKS, Stacks};
use super::error::HeapSnapshotError;
use super::json::Scanner;
use super::limits::{MOST_NODES, too_many_nodes};
use super::meta::Meta;
use super::part_files::{EDGES, METADATA, NODES, PartFile, Records, STRINGS, open, part};
use super::part_strings::Strings;
use crate::fault::Fault;
use stackglass_profile::heap_graph::NODE_KINDS;
use std::fs::File;
use std::io;
use std::path::Path;

/// The part files of one snapshot.
pub(super) struct Parts {
    pub meta: Meta,
    pub nodes: Records,
    pub edges: Records,
    pub strings: Strings,
    pub stacks: Stacks,
    /// By kind of edge: whether its label is a number.
    pub numbered: Vec<bool>,
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
        let (meta, stacks) = read_metadata(file).map_err(|fault| fault.in_file(&path))?;
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

    /// Whether the ids of blocks are their addresses, and kinds are those of [`NodeKind`](stackglass_profile::heap_graph::NodeKind).
    pub(super) fn have_addresses(&self) -> bool {
        self.meta.node_kinds == NODE_KINDS
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
