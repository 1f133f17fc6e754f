//! Inputs that fuzzing of type layouts began with or found.

#[path = "../../../fuzz/checks/layouts.rs"]
mod layouts;
#[path = "../../../fuzz/checks/memory.rs"]
mod memory;

use proptest::prelude::*;

fn corpus() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/layouts");
    let files = folder.read_dir().unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let files: Vec<Vec<u8>> = files.collect();
    assert!(files.len() > 1, "{} holds the corpus", folder.display());
    files
}

#[test]
fn inputs_that_fuzzing_began_with_or_found() {
    for bytes in corpus() {
        let types = layouts::check(&bytes);
        assert!(types > 3, "{types} types in {} bytes", bytes.len());
    }
}

proptest! {
    #[test]
    fn changed_inputs(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let corpus = corpus();
        let mut bytes = which.get(&corpus).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        layouts::check(&bytes);
    }
}
