//! Writes samples or a flame graph as a `.jlprof` file for Julia.

use super::graph::GraphNode;
use super::layout::{BYTE_ORDER, END, GRAPH, MAGIC, NODE, SAMPLES};
use crate::atomic_write::write_atomically;
use stackglass_profile::{Data, Dictionary, Frame, Recording};
use std::borrow::Borrow;
use std::io::{self, Write};
use std::path::Path;

/// Writes a buffer and its dictionary. The file appears under its name when it is complete.
///
/// # Errors
/// The system's errors.
pub fn write(path: impl AsRef<Path>, data: &Data, dictionary: &Dictionary) -> io::Result<()> {
    let words = data.words();
    write_atomically(path.as_ref(), |out| {
        write_to(out, words.len() as u64, words.iter().copied(), dictionary)
    })
}

/// Writes a recording. Its samples are expanded to words on the fly, so that memory does not grow with them. The file has
/// `8 * recording.words_len()` bytes and the names.
///
/// # Errors
/// The system's errors.
pub fn write_recording(path: impl AsRef<Path>, recording: &Recording) -> io::Result<()> {
    let dictionary = recording.dictionary();
    write_atomically(path.as_ref(), |out| {
        write_to(out, recording.words_len(), recording.words(), &dictionary)
    })
}

/// Writes `count` words and a dictionary, its addresses ascending.
///
/// A zero byte in a name, which Julia would refuse, becomes U+FFFD.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if there are not `count` words, or too many names. Otherwise the errors of the writer.
pub fn write_to(
    out: &mut impl Write,
    count: u64,
    words: impl IntoIterator<Item = u64>,
    dictionary: &Dictionary,
) -> io::Result<()> {
    write_header(out, SAMPLES)?;
    out.write_all(&count.to_le_bytes())?;
    let mut written = 0u64;
    for word in words {
        out.write_all(&word.to_le_bytes())?;
        written += 1;
    }
    if written != count {
        return Err(invalid(&format!("{written} words where {count} were announced")));
    }
    let addresses = dictionary.addresses();
    out.write_all(&(addresses.len() as u64).to_le_bytes())?;
    for address in addresses {
        let frames = dictionary.get(address).unwrap_or(&[]);
        out.write_all(&address.to_le_bytes())?;
        let count = i32::try_from(frames.len()).map_err(|_| invalid("too many frames at one address"))?;
        out.write_all(&count.to_le_bytes())?;
        for frame in frames {
            write_frame(out, frame)?;
        }
    }
    Ok(())
}

/// Writes a flame graph from its nodes, each before its children. The file appears under its name only when it is
/// complete.
///
/// # Errors
/// As [`write_graph_to`].
pub fn write_graph<F: Borrow<Frame>>(
    path: impl AsRef<Path>,
    nodes: impl IntoIterator<Item = GraphNode<F>>,
) -> io::Result<()> {
    write_atomically(path.as_ref(), |out| write_graph_to(out, nodes))
}

/// As [`write_graph`], to any writer.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the nodes are not a tree: there are none, one is more than one level deeper than the
/// previous one, or there is a second root. Otherwise the errors of the writer.
pub fn write_graph_to<F: Borrow<Frame>>(
    out: &mut impl Write,
    nodes: impl IntoIterator<Item = GraphNode<F>>,
) -> io::Result<()> {
    write_header(out, GRAPH)?;
    let mut open = 0;
    for node in nodes {
        if node.depth > open || (node.depth == 0) != (open == 0) {
            return Err(invalid(&format!("a node at depth {} where {open} are open", node.depth)));
        }
        end_nodes(out, open - node.depth)?;
        out.write_all(&[NODE])?;
        write_frame(out, node.frame.borrow())?;
        out.write_all(&[node.status])?;
        out.write_all(&node.start.to_le_bytes())?;
        out.write_all(&node.stop.to_le_bytes())?;
        open = node.depth + 1;
    }
    if open == 0 {
        return Err(invalid("a flame graph without a node"));
    }
    end_nodes(out, open)
}

fn end_nodes(out: &mut impl Write, nodes: usize) -> io::Result<()> {
    (0..nodes).try_for_each(|_| out.write_all(&[END]))
}

fn write_header(out: &mut impl Write, form: u8) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    out.write_all(&BYTE_ORDER.to_le_bytes())?;
    out.write_all(&[form])
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_owned())
}

fn write_frame(out: &mut impl Write, frame: &Frame) -> io::Result<()> {
    for name in [&frame.func, &frame.file] {
        let name = name.replace('\0', "\u{fffd}");
        let length = i32::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(name.as_bytes())?;
    }
    out.write_all(&frame.line.to_le_bytes())?;
    out.write_all(&[frame.foreign.into(), frame.inlined.into()])
}
