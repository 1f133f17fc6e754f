//! Streams that the fuzz target begins with, or has failed on, are read in every run.

#[path = "../../../fuzz/checks/memory.rs"]
mod memory;
#[path = "../../../fuzz/checks/stream.rs"]
mod stream;

use std::path::Path;

#[test]
fn streams_that_fuzzing_began_with_or_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/stream");
    let mut files = 0;
    for entry in folder.read_dir().unwrap() {
        stream::check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 1, "{} holds the corpus", folder.display());
}
