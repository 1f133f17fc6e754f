//! `.jlprof` files with samples: what FlameGraphs.jl saves for a `(Data, dictionary)` pair.
//!
//! Layout, in the byte order of the machine that wrote it (ours: little-endian):
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | magic `JLPROF` 1 0 |
//! | 4 | 0x01020304, which tells the byte order |
//! | 1 | 1: samples (2: a flame graph, not read here) |
//! | 8, 8 n | n words of a profile buffer, see [`Data`](stackglass_profile::Data) |
//! | 8 | entries of the dictionary, each: |
//! | 8, 4 | address, number of frames (innermost inlined one first), each: |
//! | 4 + …, 4 + … | function, file: length and bytes |
//! | 8, 1, 1 | line, foreign, inlined |
//!
//! What Julia accepts is accepted: a wrong magic (told by [`Samples::magic`]), negative table counts,
//! names that are not UTF-8, bytes after the end; files of the other byte order, too, which Julia
//! refuses. Nothing else of a frame is stored: full names, addresses, modules and crates are lost.

mod reader;
mod writer;

pub use reader::{JlprofError, Samples, read, read_from};
pub use writer::{write, write_recording, write_to};

/// First bytes of a file.
const MAGIC: [u8; 8] = *b"JLPROF\x01\0";

/// Tells the byte order.
const BYTE_ORDER: u32 = 0x0102_0304;

/// Forms a file can have.
const SAMPLES: u8 = 1;
const GRAPH: u8 = 2;
