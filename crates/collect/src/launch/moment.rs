//! What is told of the moment and the place of a recording: the machine, names of snapshots.

use std::path::{Path, PathBuf};

/// `demo.glass` becomes `demo-1.glass`.
pub fn snapshot_path(output: &Path, number: u32) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let extension = output.extension().map_or("glass".into(), |extension| extension.to_string_lossy());
    output.with_file_name(format!("{stem}-{number}.{extension}"))
}

/// Host name, kernel and processors.
pub fn machine() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{}, Linux {}, {processors} processors", read("hostname").trim(), read("osrelease").trim())
}
