//! Why a file is refused.

use super::layout::ROOT_OFFSET;
use std::io;

/// A file that is refused. Offsets are those of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JlprofError {
    /// The system failed.
    #[error("cannot read at byte {at}: {source}")]
    Read {
        /// How far it was read.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// Too short.
    #[error("ends at byte {at}, in the middle of {inside}")]
    Cut {
        /// Its size.
        at: u64,
        /// What is not whole.
        inside: &'static str,
    },
    /// Not 0x01020304 in either order.
    #[error("byte 8 should tell the byte order (0x01020304), but is 0x{found:08x}")]
    ByteOrder {
        /// What stands there.
        found: u32,
    },
    /// A form of later versions.
    #[error("form {found} at byte 12: not known; samples have form 1, flame graphs form 2")]
    Form {
        /// What stands there.
        found: u8,
    },
    /// A flame graph where samples are wanted.
    #[error("a flame graph (form 2 at byte 12), which has no samples")]
    IsGraph,
    /// Neither the beginning of a node nor its end.
    #[error("byte {at} should {}, but is 0x{found:02x}", expected(*at))]
    Tag {
        /// Where it stands.
        at: u64,
        /// What stands there.
        found: u8,
    },
    /// A size that cannot be.
    #[error("byte {at} says that there are {count} {what}, which cannot be: the file is damaged")]
    Count {
        /// Where it stands.
        at: u64,
        /// What is counted.
        what: &'static str,
        /// The size.
        count: i64,
    },
    /// Names end where their length says, not at a zero byte, and have none.
    #[error("the name at byte {at} has a zero byte in it")]
    ZeroInName {
        /// Where it begins.
        at: u64,
    },
    /// By its first bytes, something else with a wrong name.
    #[error("its first bytes are those of {kind}")]
    OtherKind {
        /// What.
        kind: &'static str,
    },
}

fn expected(at: u64) -> &'static str {
    if at == ROOT_OFFSET { "begin the root (0xff)" } else { "begin a node (0xff) or end one (0x00)" }
}
