//! Heap snapshots of the own process.
#![cfg(feature = "heap")]

use stackglass::{
    HeapSnapshotOptions, take_heap_snapshot, take_heap_snapshot_to, take_heap_snapshot_with,
    write_heap_snapshot,
};
use stackglass_files::heapsnapshot;
use std::hint::black_box;

/// Bytes of each block of [`blocks`], as no other code of this test allocates.
const SIZE: usize = 4_321;

fn blocks() -> Vec<Box<[u8; SIZE]>> {
    (0..200).map(|n| Box::new([n as u8; SIZE])).collect()
}

/// Leaves of one type become one node for viewers.
#[test]
fn small_blocks_can_be_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let kept = black_box(blocks());
    let options = HeapSnapshotOptions { group_small: true, ..Default::default() };
    let path = take_heap_snapshot_to(folder.path().join("grouped"), &options).unwrap();
    let graph = heapsnapshot::read(&path).unwrap();
    let groups = graph.names.iter().filter(|name| graph.strings[name.0 as usize].contains(" × ")).count();
    assert!(groups > 0 && count(&path) < kept.len(), "{groups}");
    drop(kept);
}

/// Nodes with the size of a block, which glibc rounds up.
fn count(path: &std::path::Path) -> usize {
    let graph = heapsnapshot::read(path).unwrap();
    graph.self_sizes.iter().filter(|size| (SIZE as u64..SIZE as u64 + 24).contains(size)).count()
}

#[test]
fn own_blocks_are_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let kept = black_box(blocks());
    let path = take_heap_snapshot(folder.path().join("own.heapsnapshot")).unwrap();
    assert_eq!(count(&path), kept.len());
    drop(kept);
    let options = HeapSnapshotOptions { dir: Some(folder.path().to_owned()), ..Default::default() };
    let path = take_heap_snapshot_with(&options).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with(&format!("{}_", std::process::id())) && name.ends_with(".heapsnapshot"),
        "{name}"
    );
    assert!(count(&path) < 10);
}

#[test]
fn parts_stay_and_writers_get_all() {
    let folder = tempfile::tempdir().unwrap();
    let kept = black_box(blocks());
    let prefix = folder.path().join("parts");
    take_heap_snapshot_to(&prefix, &HeapSnapshotOptions { streaming: true, ..Default::default() }).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    let mut text = Vec::new();
    write_heap_snapshot(&mut text, &HeapSnapshotOptions::default()).unwrap();
    let path = folder.path().join("written");
    std::fs::write(&path, text).unwrap();
    assert!(count(&path) >= kept.len());
}

#[test]
fn a_missing_folder_is_an_error() {
    let error = take_heap_snapshot("/no/such/folder/x.heapsnapshot").unwrap_err().to_string();
    assert!(error.contains("/no/such/folder/x.heapsnapshot:"), "{error}");
    // No child stays.
    let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id()));
    assert!(children.is_ok_and(|children| children.trim().is_empty()));
}
