//! The four part files of a snapshot: their names, and their records of fixed size.

use super::error::HeapSnapshotError;
use crate::fault::Fault;
use stackglass_profile::heap_graph::NodeKind;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Endings of the part files. The one with the counts is the last to appear and the first to go.
pub(super) const NODES: &str = ".nodes";
pub(super) const EDGES: &str = ".edges";
pub(super) const STRINGS: &str = ".strings";
pub(super) const METADATA: &str = ".metadata.json";

/// Path of a part file: the ending is appended to the prefix.
pub(super) fn part(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(ending);
    name.into()
}

/// The path of a part file, for messages, and the file.
pub(super) type PartFile = (PathBuf, File);

/// Opens a part file.
pub(super) fn open(prefix: &Path, ending: &str) -> Result<PartFile, HeapSnapshotError> {
    let path = part(prefix, ending);
    let file = File::open(&path).map_err(HeapSnapshotError::system("open", &path))?;
    Ok((path, file))
}

/// Removes the part files with a prefix. Missing ones are no error.
///
/// # Errors
/// If the system refuses.
pub fn cleanup(prefix: &Path) -> Result<(), HeapSnapshotError> {
    for ending in [METADATA, NODES, EDGES, STRINGS] {
        let path = part(prefix, ending);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HeapSnapshotError::system("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A node, as stored: kind (u8 or u32), name, id, own size, trace node (u64 each), detachedness (u8). Ours have unused bytes
/// in the upper half of the trace node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeRecord {
    pub kind: u32,
    pub name: u64,
    pub id: u64,
    pub self_size: u64,
    /// The stack that allocated it.
    pub stack: u32,
    pub unused: u32,
    pub detachedness: u8,
}

/// An edge, as stored: kind (u8 or u32), name or index, and the rows of both nodes (u64 each).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EdgeRecord {
    pub kind: u32,
    pub name_or_index: u64,
    pub from: u64,
    pub to: u64,
}

/// Bytes of a record without its kind.
const NODE_REST: usize = 33;
const EDGE_REST: usize = 24;

impl NodeRecord {
    /// The layout with kinds of one byte, which is ours.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut record = [0; 1 + NODE_REST];
        record[0] = self.kind as u8;
        record[1..9].copy_from_slice(&self.name.to_le_bytes());
        record[9..17].copy_from_slice(&self.id.to_le_bytes());
        record[17..25].copy_from_slice(&self.self_size.to_le_bytes());
        record[25..29].copy_from_slice(&self.stack.to_le_bytes());
        record[29..33].copy_from_slice(&self.unused.to_le_bytes());
        record[33] = self.detachedness;
        out.extend_from_slice(&record);
    }

    /// The address of a block of ours; `None` for a root.
    #[inline]
    pub(super) fn address(&self) -> Option<u64> {
        (self.kind != NodeKind::Synthetic as u32).then_some(self.id)
    }

    #[inline]
    pub(super) fn read(record: &[u8]) -> Self {
        let (kind, rest) = record.split_at(record.len() - NODE_REST);
        Self {
            kind: kind_of(kind),
            name: word(rest, 0),
            id: word(rest, 8),
            self_size: word(rest, 16),
            stack: word(rest, 24) as u32,
            unused: (word(rest, 24) >> 32) as u32,
            detachedness: rest[32],
        }
    }
}

impl EdgeRecord {
    /// The layout with kinds of one byte, which is ours.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut record = [0; 1 + EDGE_REST];
        record[0] = self.kind as u8;
        record[1..9].copy_from_slice(&self.name_or_index.to_le_bytes());
        record[9..17].copy_from_slice(&self.from.to_le_bytes());
        record[17..25].copy_from_slice(&self.to.to_le_bytes());
        out.extend_from_slice(&record);
    }

    #[inline]
    pub(super) fn read(record: &[u8]) -> Self {
        let (kind, rest) = record.split_at(record.len() - EDGE_REST);
        Self { kind: kind_of(kind), name_or_index: word(rest, 0), from: word(rest, 8), to: word(rest, 16) }
    }
}

#[inline]
fn kind_of(bytes: &[u8]) -> u32 {
    match *bytes {
        [byte] => byte.into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => u32::MAX,
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A file of records, of which the kind has one or four bytes.
#[derive(Debug)]
pub(super) struct Records {
    pub path: PathBuf,
    file: File,
    width: usize,
    count: u64,
}

impl Records {
    pub(super) fn nodes(part: PartFile, count: u64) -> Result<Self, HeapSnapshotError> {
        Self::new(part, count, NODE_REST, "nodes")
    }

    pub(super) fn edges(part: PartFile, count: u64) -> Result<Self, HeapSnapshotError> {
        Self::new(part, count, EDGE_REST, "edges")
    }

    fn new((path, file): PartFile, count: u64, rest: usize, what: &str) -> Result<Self, HeapSnapshotError> {
        let size = file.metadata().map_err(HeapSnapshotError::system("open", &path))?.len();
        let fits = |width: usize| count.checked_mul(width as u64) == Some(size);
        let Some(width) = [rest + 1, rest + 4].into_iter().find(|width| fits(*width)) else {
            let (narrow, wide) = (rest + 1, rest + 4);
            return Err(HeapSnapshotError::invalid(
                &path,
                format!(
                    "has {size} bytes, but {count} {what} of {narrow} or {wide} bytes are announced: it is \
                     truncated, or belongs to another snapshot"
                ),
            ));
        };
        Ok(Self { path, file, width, count })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Calls a function for each record, from the first to the last.
    pub(super) fn each<E: From<Fault>>(
        &self,
        mut record: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buffer = vec![0; (1 << 20) / self.width * self.width];
        let mut left = self.count * self.width as u64;
        let mut file = &self.file;
        file.rewind().map_err(Fault::from)?;
        while left > 0 {
            let size = (buffer.len() as u64).min(left) as usize;
            file.read_exact(&mut buffer[..size]).map_err(Fault::from)?;
            left -= size as u64;
            for bytes in buffer[..size].chunks_exact(self.width) {
                record(bytes)?;
            }
        }
        Ok(())
    }

    /// A fault in record `row`.
    pub(super) fn fault<T>(&self, row: u64, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::at(row * self.width as u64, what))
    }
}
