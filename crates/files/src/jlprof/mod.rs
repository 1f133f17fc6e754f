//! `.jlprof` files: FlameGraphs.jl's format for a `(Data, dictionary)` pair or a flame graph.
//!
//! The layout has the byte order of the machine that wrote the file. This crate writes little-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | magic `JLPROF` 1 0 |
//! | 4 | 0x01020304, which tells the byte order |
//! | 1 | form: 1 samples, 2 a flame graph |
//!
//! Samples are:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8, 8 n | n words of a profile buffer, see [`Data`](stackglass_profile::Data) |
//! | 8 | entries of the dictionary, each: |
//! | 8, 4 | address, number of frames (innermost inlined one first), each: |
//! | 4 + …, 4 + … | function, file: length and bytes |
//! | 8, 1, 1 | line, foreign, inlined |
//!
//! A flame graph is its root, and a node is:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | 255 |
//! | 4 + …, 4 + …, 8, 1, 1 | its frame, as above |
//! | 1, 8, 8 | status bits, first and last position of its span |
//! | … | the nodes in it |
//! | 1 | 0 |
//!
//! The reader accepts everything that Julia accepts: a wrong magic (see [`Samples::magic`]), negative table counts, names
//! that are not UTF-8, bytes after the samples, graphs that end at any tag. It also accepts the other byte order, which
//! Julia refuses. Full names, addresses, modules and crates of frames are not stored.

mod error;
mod graph;
mod layout;
mod reader;
mod source;
mod writer;

pub use error::JlprofError;
pub use graph::{GraphNode, Nodes};
pub use reader::{Content, Samples, read, read_from};
pub use writer::{write, write_graph, write_graph_to, write_recording, write_to};
