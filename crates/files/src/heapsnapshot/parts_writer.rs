//! Writes a heap graph to four part files, while it is found.

use super::allocation_stacks::Stacks;
use super::assemble::{AssembleOptions, Assembled};
use super::error::HeapSnapshotError;
use super::limits::{MOST_NODES, too_many_nodes};
use super::meta::Meta;
use super::part_files::{self, EdgeRecord, NodeRecord, part};
use super::parts::Parts;
use crate::unnamed_file::UnnamedFile;
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::heap_graph::{
    AllocationStack, AllocationStacks, EdgeKind, HeapGraphSink, NameId, NodeIndex, NodeKind,
};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes collected for one write.
const FLUSH: usize = 1 << 18;

/// Writes a heap graph to the part files `PREFIX.nodes`, `.edges`, `.strings` and `.metadata.json`, or to temporary ones of
/// which [`PartsWriter::assemble`] makes one snapshot.
///
/// The files have no names, or hidden ones where the file system needs names, until [`PartsWriter::finish`] names them, the
/// metadata last. Dropping the writer removes them. Memory is that of the distinct names and three buffers.
///
/// ```
/// use stackglass_files::heapsnapshot::{PartsWriter, assemble};
/// use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NodeIndex, NodeKind};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let prefix = folder.path().join("app");
/// let mut parts = PartsWriter::create(&prefix)?;
/// let (root, app, field) = (parts.name(""), parts.name("App"), parts.name("app"));
/// parts.node(NodeKind::Synthetic, root, 0, 0)?;
/// parts.node(NodeKind::Object, app, 0x5000, 48)?;
/// parts.edge(NodeIndex(0), NodeIndex(1), EdgeKind::Property, field.0)?;
/// parts.finish()?;
/// let out = folder.path().join("app.heapsnapshot");
/// assert_eq!(assemble(&prefix, &out)?.nodes, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PartsWriter {
    prefix: PathBuf,
    nodes: Part,
    edges: Part,
    strings: Part,
    names: HashMap<Box<str>, NameId>,
    node_count: u32,
    edge_count: u64,
    /// Unused bytes of the next node.
    unused: u32,
    /// The stack that allocated it.
    allocated_by: AllocationStack,
    stacks: Stacks,
    /// An error of writing a name, for which the call of [`HeapGraphSink::name`] has no result.
    failed: Option<HeapSnapshotError>,
}

/// One part file before it has its name.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: UnnamedFile,
    pending: Vec<u8>,
}

impl Part {
    fn create(prefix: &Path, ending: &str) -> Result<Self, HeapSnapshotError> {
        let path = part(prefix, ending);
        let file = UnnamedFile::create(&path, 0o600).map_err(HeapSnapshotError::system("create", &path))?;
        Ok(Self { path, file, pending: Vec::with_capacity(FLUSH + 64) })
    }

    #[inline]
    fn added(&mut self) -> Result<(), HeapSnapshotError> {
        if self.pending.len() < FLUSH { Ok(()) } else { self.flush() }
    }

    #[cold]
    fn flush(&mut self) -> Result<(), HeapSnapshotError> {
        let written = self.file.file().write_all(&self.pending);
        self.pending.clear();
        written.map_err(HeapSnapshotError::system("write", &self.path))
    }

    fn finish(mut self) -> Result<(), HeapSnapshotError> {
        self.flush()?;
        let path = self.path;
        self.file.persist(&path).map_err(HeapSnapshotError::system("name", &path))
    }

    /// The path that it would get, and the complete file.
    fn into_file(mut self) -> Result<(PathBuf, File), HeapSnapshotError> {
        self.flush()?;
        let file = self.file.file().try_clone().map_err(HeapSnapshotError::system("read", &self.path))?;
        Ok((self.path, file))
    }
}

impl PartsWriter {
    /// Begins a snapshot. Existing part files stay until [`PartsWriter::finish`].
    ///
    /// # Errors
    /// If the files cannot be created.
    pub fn create(prefix: &Path) -> Result<Self, HeapSnapshotError> {
        Ok(Self {
            prefix: prefix.to_owned(),
            nodes: Part::create(prefix, part_files::NODES)?,
            edges: Part::create(prefix, part_files::EDGES)?,
            strings: Part::create(prefix, part_files::STRINGS)?,
            names: HashMap::new(),
            node_count: 0,
            edge_count: 0,
            unused: 0,
            allocated_by: AllocationStack::UNKNOWN,
            stacks: Stacks::default(),
            failed: None,
        })
    }

    /// Number of nodes so far.
    pub fn node_count(&self) -> u32 {
        self.node_count
    }

    /// Number of edges so far.
    pub fn edge_count(&self) -> u64 {
        self.edge_count
    }

    /// Completes the files and gives them their names. Older part files with these names are replaced. The metadata is
    /// removed first and appears last, so that parts of two snapshots never look like one.
    ///
    /// # Errors
    /// If writing or renaming fails.
    pub fn finish(mut self) -> Result<(), HeapSnapshotError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut metadata = Part::create(&self.prefix, part_files::METADATA)?;
        Meta::ours(self.node_count.into(), self.edge_count).write(&mut metadata.pending);
        self.stacks.write_flat(&mut metadata.pending);
        metadata.pending.push(b'}');
        for part in [&mut self.nodes, &mut self.edges, &mut self.strings, &mut metadata] {
            part.flush()?;
        }
        match fs::remove_file(&metadata.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HeapSnapshotError::system("replace", &metadata.path)(error));
            }
            _ => {}
        }
        self.nodes.finish()?;
        self.edges.finish()?;
        self.strings.finish()?;
        metadata.finish()
    }
}

impl PartsWriter {
    /// Makes the snapshot `out` of the parts, which get no names. An existing file stays until the new one is complete.
    ///
    /// # Errors
    /// As [`assemble_with`](super::assemble_with).
    pub fn assemble(mut self, out: &Path, options: AssembleOptions) -> Result<Assembled, HeapSnapshotError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let meta = Meta::ours(self.node_count.into(), self.edge_count);
        let metadata = part(&self.prefix, part_files::METADATA);
        let (nodes, edges, strings) =
            (self.nodes.into_file()?, self.edges.into_file()?, self.strings.into_file()?);
        Parts::new(&metadata, meta, self.stacks, nodes, edges, strings)?.write(out, options)
    }
}

impl HeapGraphSink for PartsWriter {
    type Error = HeapSnapshotError;

    fn name(&mut self, text: &str) -> NameId {
        if let Some(known) = self.names.get(text) {
            return *known;
        }
        let id = NameId(self.names.len() as u32);
        self.names.insert(text.into(), id);
        self.strings.pending.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.strings.pending.extend_from_slice(text.as_bytes());
        if let Err(error) = self.strings.added() {
            self.failed.get_or_insert(error);
        }
        id
    }

    fn unused(&mut self, bytes: u64) {
        self.unused = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    fn stacks(&mut self, stacks: &AllocationStacks) {
        self.stacks = Stacks::from_allocation_stacks(stacks, &mut |text| self.name(text));
    }

    fn allocated_by(&mut self, stack: AllocationStack) {
        self.allocated_by = stack;
    }

    fn node(
        &mut self,
        kind: NodeKind,
        name: NameId,
        id: u64,
        self_size: u64,
    ) -> Result<NodeIndex, HeapSnapshotError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.node_count == MOST_NODES {
            return Err(HeapSnapshotError::invalid(&self.nodes.path, too_many_nodes()));
        }
        let record = NodeRecord {
            kind: kind as u32,
            name: name.0.into(),
            id,
            self_size,
            stack: std::mem::take(&mut self.allocated_by).0,
            unused: std::mem::take(&mut self.unused),
            detachedness: 0,
        };
        record.write(&mut self.nodes.pending);
        self.nodes.added()?;
        self.node_count += 1;
        Ok(NodeIndex(self.node_count - 1))
    }

    fn edge(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        kind: EdgeKind,
        name_or_index: u32,
    ) -> Result<(), HeapSnapshotError> {
        let record = EdgeRecord {
            kind: kind as u32,
            name_or_index: name_or_index.into(),
            from: from.0.into(),
            to: to.0.into(),
        };
        record.write(&mut self.edges.pending);
        self.edges.added()?;
        self.edge_count += 1;
        Ok(())
    }
}
