//! What is known of a recording when it begins.

use stackglass_procfs::clock::{monotonic, realtime};
use stackglass_profile::{Nanos, RecordingInfo};

/// A recording of this command that begins now. `writer` is name and version of the program that writes it.
pub fn beginning_now(command: Vec<String>, writer: &str) -> RecordingInfo {
    RecordingInfo {
        command,
        started: realtime(),
        start: Nanos(monotonic()),
        writer: writer.to_owned(),
        machine: machine(),
        ..RecordingInfo::default()
    }
}

/// Host name, kernel version and number of CPUs.
fn machine() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{}, Linux {}, {cpus} CPUs", read("hostname").trim(), read("osrelease").trim())
}
