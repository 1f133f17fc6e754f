//! Programs under the preloaded library.

use super::support::{Process, build};
use stackglass_heapgraph::blocks::glibc::{GlibcHeap, live_blocks};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The preloaded library and the program that prints registers.
pub struct Tools {
    pub folder: tempfile::TempDir,
    recorder: PathBuf,
    pub registers: PathBuf,
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/glibc/sources").join(name)
}

impl Tools {
    pub fn build() -> Tools {
        let folder = tempfile::tempdir().unwrap();
        let recorder = build(folder.path(), &source("recorder.c"), "gcc", &["-O2", "-fPIC", "-shared"]);
        let registers = build(folder.path(), &source("registers.c"), "gcc", &["-O2"]);
        Tools { folder, recorder, registers }
    }

    /// Compiles a C program.
    pub fn c(&self, name: &str) -> PathBuf {
        build(self.folder.path(), &source(name), "gcc", &["-O2", "-pthread"])
    }

    /// Starts a program under the preloaded library.
    pub fn start(&self, command: &mut Command) -> Process {
        let file = self.folder.path().join("blocks");
        let _ = std::fs::remove_file(&file);
        Process::start(command.env("LD_PRELOAD", &self.recorder).env("RECORDER_FILE", file), &self.registers)
    }

    /// The blocks that the library counts.
    pub fn counted(&self, process: &Process) -> BTreeSet<(u64, u64)> {
        let file = self.folder.path().join("blocks");
        process.settle();
        process.signal("-USR2");
        let end = Instant::now() + Duration::from_secs(60);
        while !file.exists() {
            assert!(Instant::now() < end, "the library does not write");
            std::thread::sleep(Duration::from_millis(5));
        }
        let bytes = std::fs::read(&file).unwrap();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
    }

    /// Compares what the library counts with what is found; returns what is found.
    pub fn compare(&self, command: &mut Command) -> GlibcHeap {
        let process = self.start(command);
        let counted = self.counted(&process);
        process.stop();
        let image = process.image();
        let heap = live_blocks(&image).unwrap();
        assert_same(&counted, &heap);
        let (count, bytes) = (counted.len(), counted.iter().map(|(_, size)| size).sum::<u64>());
        // For the benchmark of heap snapshots, which shows these figures.
        println!("same blocks: {count}, with {bytes} bytes, in {} arenas", heap.report.arenas);
        heap
    }
}

/// Both are the same blocks with the same sizes.
pub fn assert_same(counted: &BTreeSet<(u64, u64)>, heap: &GlibcHeap) {
    let found: BTreeSet<_> = heap.blocks.iter().collect();
    let show = |list: Vec<&(u64, u64)>| {
        let first: Vec<_> = list.iter().take(8).map(|(at, size)| format!("{at:#x}: {size}")).collect();
        format!("{} ({})", list.len(), first.join(", "))
    };
    assert!(
        *counted == found,
        "{} counted, {} found; not found: {}; not counted: {}; {:#?}",
        counted.len(),
        found.len(),
        show(counted.difference(&found).collect()),
        show(found.difference(counted).collect()),
        heap.report
    );
    assert_eq!(heap.blocks.sites.len(), heap.blocks.len());
}
