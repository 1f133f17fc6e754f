//! A recording that is written while it grows outlives the process.
#![cfg(feature = "files")]

use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn burn(time: Duration) {
    let (began, mut x) = (Instant::now(), 1u64);
    while began.elapsed() < time {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
}

const CHILD: &str = "STACKGLASS_TEST_CHILD_WRITES_TO";

/// Not a test of its own: what the next test runs as a child, and what it is without.
#[test]
fn child_that_is_aborted() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let _profiler = stackglass::Profiler::to_file(path).unwrap();
    burn(Duration::from_millis(900));
    std::process::abort();
}

#[test]
fn an_aborted_process_leaves_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.glass");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_aborted"])
        .env(CHILD, &path)
        .output()
        .unwrap()
        .status;
    assert!(!status.success());
    let (recording, completeness) = stackglass_files::read(&path).unwrap();
    assert!(!completeness.is_complete());
    let hits: u32 = recording.samples.iter().map(|s| s.hits).sum();
    assert!(hits > 100, "{hits} hits survive");
}

#[test]
fn a_finished_recording_has_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.glass");
    let profiler = stackglass::Profiler::to_file(&path).unwrap();
    burn(Duration::from_millis(300));
    profiler.stop();
    let (recording, completeness) = stackglass_files::read(&path).unwrap();
    assert!(completeness.is_complete());
    assert!(recording.symbols.frames().iter().any(|f| f.func.ends_with("::burn")));
}

#[test]
fn threads_that_serve_the_profiler_are_not_in_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.glass");
    for _ in 0..4 {
        let profiler = stackglass::Profiler::to_file(&path).unwrap();
        // Names are read again after a tenth of a second.
        burn(Duration::from_millis(250));
        profiler.stop();
        let (recording, _) = stackglass_files::read(&path).unwrap();
        assert!(!recording.threads.is_empty());
        let ours = recording.threads.iter().find(|thread| thread.name.starts_with("stackglass"));
        assert!(ours.is_none(), "{ours:?}");
    }
}
