//! The machine on which a recording is made.

/// Host name, kernel version and number of CPUs.
pub fn machine() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{}, Linux {}, {cpus} CPUs", read("hostname").trim(), read("osrelease").trim())
}
