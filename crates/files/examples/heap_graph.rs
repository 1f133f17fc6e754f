//! Writes a made-up heap of a given number of blocks, assembles and reads it, and prints how long that takes, and how much
//! of that time is CPU time.
//!
//! `cargo run --release -p stackglass-files --example heap_graph -- BLOCKS FOLDER`

use stackglass_files::heapsnapshot::{AssembleOptions, PartsWriter, assemble, assemble_with, read};
use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NameId, NodeIndex, NodeKind};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// Types of blocks, and their sizes.
const TYPES: [(NodeKind, &str, u64); 5] = [
    (NodeKind::Object, "Node", 48),
    (NodeKind::Object, "RcInner<Shared>", 32),
    (NodeKind::Array, "[u16]", 6),
    (NodeKind::String, "String", 24),
    (NodeKind::Native, "site: read_line", 16),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(blocks), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: heap_graph BLOCKS FOLDER".into());
    };
    let blocks: u32 = blocks.parse()?;
    let prefix = Path::new(&folder).join(format!("made-{blocks}"));
    let out = prefix.with_extension("heapsnapshot");
    timed("parts", || write(&prefix, blocks))?;
    let assembled = timed("assembling", || assemble(&prefix, &out))?;
    println!("{} nodes, {} edges, {} bytes in blocks", assembled.nodes, assembled.edges, assembled.self_size);
    println!("{} bytes in the file", out.metadata()?.len());
    let small = prefix.with_extension("small.heapsnapshot");
    let options = AssembleOptions { group_small: true };
    let grouped = timed("assembling with groups", || assemble_with(&prefix, &small, options))?;
    println!("{} nodes, {} edges, {} bytes in blocks", grouped.nodes, grouped.edges, grouped.self_size);
    for path in [&out, &prefix] {
        let graph = timed("reading", || read(path))?;
        println!("{}: {} nodes", path.display(), graph.len());
    }
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (started, cpu) = (Instant::now(), cpu_time());
    let result = work();
    let (elapsed, cpu) = (started.elapsed(), cpu_time() - cpu);
    println!("{what}: {elapsed:.2?}, {cpu:.2?} of CPU time, {} so far", peak_memory());
    result
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

/// A heap in which every sixteenth block holds the next fifteen, and those lists hold each other.
fn write(prefix: &Path, blocks: u32) -> Result<(), Box<dyn Error>> {
    let mut parts = PartsWriter::create(prefix)?;
    let [root, stack, list, next] = ["", "(thread stacks)", "items", "next"].map(|name| parts.name(name));
    let types = TYPES.map(|(kind, name, size)| (kind, parts.name(name), size));
    parts.node(NodeKind::Synthetic, root, 0, 0)?;
    parts.node(NodeKind::Synthetic, stack, 1, 0)?;
    for block in 0..blocks {
        let (kind, name, size) = match block % 16 {
            0 => (NodeKind::Array, list, 15 * 8),
            other => types[other as usize % types.len()],
        };
        parts.node(kind, name, 0x2aaa_aaaa_0000 + 32 * u64::from(block), size)?;
    }
    parts.edge(NodeIndex(0), NodeIndex(1), EdgeKind::Internal, stack.0)?;
    let mut edge = |from: u32, to: u32, kind, label: NameId| {
        parts.edge(NodeIndex(from), NodeIndex(2 + to), kind, label.0)
    };
    edge(1, 0, EdgeKind::Property, list)?;
    for owner in (0..blocks).step_by(16) {
        for (index, element) in (0..).zip((owner + 1..blocks).take(15)) {
            edge(2 + owner, element, EdgeKind::Element, NameId(index))?;
        }
        if owner + 16 < blocks {
            edge(2 + owner, owner + 16, EdgeKind::Property, next)?;
        }
    }
    parts.finish()?;
    Ok(())
}

/// The most memory that the process had so far.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    format!("{} of memory at most", line.unwrap_or("unknown").trim())
}
