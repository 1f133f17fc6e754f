//! Constants of the layout described in [`super`].

/// First bytes of a file.
pub(super) const MAGIC: [u8; 8] = *b"JLPROF\x01\0";

/// Tells the byte order.
pub(super) const BYTE_ORDER: u32 = 0x0102_0304;

/// Form of a file with samples.
pub(super) const SAMPLES: u8 = 1;

/// Form of a file with a flame graph.
pub(super) const GRAPH: u8 = 2;

/// Offset of the root of a flame graph.
pub(super) const ROOT_OFFSET: u64 = 13;

/// Begins a node of a flame graph.
pub(super) const NODE: u8 = 0xff;

/// Ends a node of a flame graph.
pub(super) const END: u8 = 0;
