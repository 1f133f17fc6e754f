//! What is told of the moment and the place of a recording: clocks, the machine, names of snapshots.

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

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live and filled by the kernel; these clocks always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns.
pub fn realtime() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// CPU time of this process, ns.
pub fn own_cpu() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}
