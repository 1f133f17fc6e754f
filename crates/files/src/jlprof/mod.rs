//! `.jlprof` files: what FlameGraphs.jl saves for a `(Data, dictionary)` pair, or for a flame graph.
//!
//! Layout, in the byte order of the machine that wrote it (ours: little-endian):
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
//! What Julia accepts is accepted: a wrong magic (told by [`Samples::magic`]), negative table counts,
//! names that are not UTF-8, bytes behind samples, graphs that end at any tag; files of the other byte
//! order, too, which Julia refuses. Nothing else of a frame is stored: full names, addresses, modules and crates are lost.

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
