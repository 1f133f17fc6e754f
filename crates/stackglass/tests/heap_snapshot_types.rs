//! Types in heap snapshots of the own process: every allocation is recorded from the start, as the documentation says.
#![cfg(feature = "heap")]

use stackglass_files::heapsnapshot;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

struct Session {
    name: String,
    bytes: [u8; 100],
}

#[test]
fn recorded_blocks_have_types() {
    let folder = tempfile::tempdir().unwrap();
    let unrecorded: Vec<Option<Box<Session>>> = black_box(sessions(7));
    stackglass::allocs::start(1.0).unwrap();
    let recorded = black_box(sessions(40));
    let path = stackglass::take_heap_snapshot(folder.path().join("typed.heapsnapshot")).unwrap();
    let graph = heapsnapshot::read(&path).unwrap();
    let found = graph.names.iter().filter(|name| &*graph.strings[name.0 as usize] == "Session").count();
    assert!(found >= recorded.len(), "{found}");
    let bytes: usize =
        unrecorded.iter().chain(&recorded).flatten().map(|one| one.name.len() + one.bytes.len()).sum();
    assert!(bytes > 47 * 100);
}

#[inline(never)]
fn sessions(count: usize) -> Vec<Option<Box<Session>>> {
    (0..count).map(|at| Some(Box::new(Session { name: at.to_string(), bytes: [at as u8; 100] }))).collect()
}
