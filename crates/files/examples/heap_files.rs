//! Writes small heap snapshots of all kinds to a folder, and `expected`, which says what readers must find in them.
//!
//! `cargo run -p stackglass-files --example heap_files -- FOLDER`

use stackglass_files::heapsnapshot::{AssembleOptions, PartsWriter, assemble_with, cleanup};
use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NodeIndex, NodeKind, UNREACHABLE};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::args_os().nth(1) else { return Err("usage: heap_files FOLDER".into()) };
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let mut expected = String::new();
    for (name, blocks, group_small) in [
        ("small", small_blocks(), false),
        ("grouped", small_blocks(), true),
        (
            "large",
            vec![(NodeKind::Array, "[u8]".into(), 5 << 30), (NodeKind::Object, "Huge".into(), 9 << 32)],
            false,
        ),
        ("names", names(), false),
        ("empty", Vec::new(), false),
    ] {
        let prefix = folder.join(name);
        write(&prefix, &blocks)?;
        let out = folder.join(format!("{name}.heapsnapshot"));
        let found = assemble_with(&prefix, &out, AssembleOptions { group_small })?;
        cleanup(&prefix)?;
        let blocks: u64 = blocks.iter().map(|(_, _, size)| *size).sum();
        if found.self_size != blocks {
            return Err(format!("{name}: {} bytes instead of {blocks}", found.self_size).into());
        }
        writeln!(expected, "{}\t{}\t{blocks}\t{}", found.nodes, found.edges, out.display())?;
    }
    fs::write(folder.join("expected"), expected)?;
    Ok(())
}

type Block = (NodeKind, String, u64);

/// Blocks of several types, of which the first one holds all.
fn small_blocks() -> Vec<Block> {
    let types = [
        (NodeKind::Object, "Node", 48),
        (NodeKind::Array, "[u16]", 6),
        (NodeKind::String, "String", 24),
        (NodeKind::Native, "site: read_line", 16),
        (NodeKind::Hidden, "padding", 8),
    ];
    let blocks = types.iter().cycle().take(20_000);
    blocks.map(|(kind, name, size)| (*kind, (*name).to_owned(), *size)).collect()
}

/// Names that viewers treat in a special way.
fn names() -> Vec<Block> {
    let names = [
        "Object",
        "<T as Trait>::Type",
        " <x",
        "(string)",
        "Window / x",
        "a\"b\\c\n\u{1}\u{7f}",
        "é\u{2028}😀\u{fffd}",
        "InternalNode",
        "__proto__",
        "constructor",
        "",
        "undefined",
        "5 012 × [u8]",
    ];
    let kinds = [NodeKind::Object, NodeKind::Native, NodeKind::Array, NodeKind::String];
    let blocks = kinds.iter().flat_map(|kind| names.iter().map(|name| (*kind, (*name).to_owned(), 16)));
    blocks.collect()
}

/// The root holds the stacks and the unreachable blocks. The first block is on a stack and holds the others; every third one
/// is unreachable.
fn write(prefix: &Path, blocks: &[Block]) -> Result<(), Box<dyn Error>> {
    let mut parts = PartsWriter::create(prefix)?;
    let [root, stacks, leaks, field] =
        ["", "(thread stacks)", UNREACHABLE, "map"].map(|name| parts.name(name));
    for (id, name) in (0..).zip([root, stacks, leaks]) {
        parts.node(NodeKind::Synthetic, name, id, 0)?;
    }
    for (row, (kind, name, size)) in (3_u64..).zip(blocks) {
        let name = parts.name(name);
        parts.unused(row % 3);
        parts.node(*kind, name, 0x2aaa_b000_0000 + 16 * row, *size)?;
    }
    let mut edge = |from, to, kind, label: u32| parts.edge(NodeIndex(from), NodeIndex(to), kind, label);
    edge(0, 1, EdgeKind::Element, 1)?;
    edge(0, 2, EdgeKind::Element, 2)?;
    let rows = 3..3 + blocks.len() as u32;
    let is_leaked = |row: &u32| row % 3 == 2;
    if !blocks.is_empty() {
        edge(1, 3, EdgeKind::Property, field.0)?;
    }
    for row in rows.clone().filter(is_leaked) {
        edge(2, row, EdgeKind::Element, row)?;
    }
    for row in rows.skip(1) {
        match is_leaked(&row) {
            true => edge(3, row, EdgeKind::Weak, field.0)?,
            false if row % 2 == 0 => edge(3, row, EdgeKind::Internal, field.0)?,
            false => edge(3, row, EdgeKind::Element, row)?,
        }
    }
    parts.finish()?;
    Ok(())
}
