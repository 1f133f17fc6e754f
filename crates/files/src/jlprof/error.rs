//! Why a file is refused.

use super::layout::ROOT_OFFSET;
use std::io;

/// Why a file is refused. Offsets are those of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JlprofError {
    /// Reading failed.
    #[error("cannot read at byte {at}: {source}")]
    Read {
        /// Offset up to which it was read.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file is too short.
    #[error("ends at byte {at}, in the middle of {inside}")]
    Cut {
        /// Its size.
        at: u64,
        /// The truncated part.
        inside: &'static str,
    },
    /// The byte order is not 0x01020304 in either order.
    #[error("byte 8 should tell the byte order (0x01020304), but is 0x{found:08x}")]
    ByteOrder {
        /// The value found.
        found: u32,
    },
    /// An unknown form.
    #[error("form {found} at byte 12: not known; samples have form 1, flame graphs form 2")]
    Form {
        /// The value found.
        found: u8,
    },
    /// A flame graph instead of samples.
    #[error("a flame graph (form 2 at byte 12), which has no samples")]
    IsGraph,
    /// Neither the begin nor the end of a node.
    #[error("byte {at} should {}, but is 0x{found:02x}", expected(*at))]
    Tag {
        /// Its offset.
        at: u64,
        /// The value found.
        found: u8,
    },
    /// An impossible count.
    #[error("byte {at} declares {count} {what}, which is impossible: the file is damaged")]
    Count {
        /// Its offset.
        at: u64,
        /// What is counted.
        what: &'static str,
        /// The size.
        count: i64,
    },
    /// A name contains a zero byte.
    #[error("the name at byte {at} contains a zero byte")]
    ZeroInName {
        /// Its offset.
        at: u64,
    },
    /// The first bytes are those of another kind of file.
    #[error("its first bytes are those of {kind}")]
    OtherKind {
        /// What.
        kind: &'static str,
    },
}

fn expected(at: u64) -> &'static str {
    if at == ROOT_OFFSET { "begin the root (0xff)" } else { "begin a node (0xff) or end one (0x00)" }
}
