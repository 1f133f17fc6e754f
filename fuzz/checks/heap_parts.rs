//! Part files of a heap snapshot: if they can be read, they can be assembled, and the result reads the same.

use super::heapsnapshot::check_graph;
use super::memory::bounded;
use stackglass_files::heapsnapshot::{AssembleOptions, assemble_to, read, read_bytes};

/// The bytes are the four files, one after the other, behind the lengths of the first three (u16).
pub fn check(bytes: &[u8]) {
    let Some((lengths, mut rest)) = bytes.split_at_checked(6) else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let prefix = folder.path().join("x");
    let mut lengths = lengths.chunks_exact(2).map(|word| usize::from(u16::from_le_bytes([word[0], word[1]])));
    for ending in ["nodes", "edges", "strings", "metadata.json"] {
        let (file, after) = rest.split_at(lengths.next().unwrap_or(usize::MAX).min(rest.len()));
        std::fs::write(prefix.with_extension(ending), file).expect("a file can be written");
        rest = after;
    }
    // Buffers of a megabyte, and the table of ids of 16 MiB.
    let allowed = 64 * bytes.len() + (24 << 20);
    let Ok(graph) = bounded(allowed, || read(&prefix)) else { return };
    check_graph(&graph);
    for group_small in [false, true] {
        let options = AssembleOptions { group_small };
        let mut text = Vec::new();
        let Ok(assembled) = bounded(allowed + (64 << 20), || assemble_to(&prefix, &mut text, options)) else {
            continue;
        };
        let again = read_bytes(&text).expect("what was assembled is read");
        check_graph(&again);
        // A block of 4 GiB or more has several nodes in the file.
        assert!(again.len() as u64 <= assembled.nodes && again.targets.len() as u64 <= assembled.edges);
        // They are known by the kind of the edges between them, if there is such a kind.
        let may_be_divided = group_small || graph.edge_kinds.iter().all(|kind| kind != "internal");
        assert!(may_be_divided || (again.len(), again.targets.len()) == (graph.len(), graph.targets.len()));
        assert_eq!(again.self_sizes.iter().sum::<u64>(), assembled.self_size);
        assert_eq!(graph.self_sizes.iter().sum::<u64>(), assembled.self_size);
    }
}
