//! Processes that events at returns could harm are refused.
//!
//! A function with such an event returns to code of the kernel's, which runs in the process. Since Linux 6.11 that code makes a
//! system call. A filter would refuse it before Linux 6.14, and end the process (commit cf6cb56ef244, "seccomp: passthrough
//! uretprobe systemcall without filtering"). A process that redirects its own calls would get it. Before Linux 6.11, the
//! changed return address is not that of the shadow stack. Threads may confine themselves later, so Linux 6.11 to 6.13 are
//! refused as a whole.

use super::UnpreparedError;
use stackglass_procfs::{Status, maps, threads};
use std::fs;

/// Kernels whose system call at returns a filter can refuse.
const CALLS_ARE_FILTERED: std::ops::Range<(u32, u32)> = (6, 11)..(6, 14);
/// Parts of the names of libraries with which a program redirects its own system calls (Syscall User Dispatch).
const REDIRECT: [&str; 2] = ["/ntdll.so", "/wine/"];

/// Refuses process `pid` if events at returns could harm it.
pub(super) fn check(pid: u32) -> Result<(), UnpreparedError> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if version(&release).is_none_or(|version| CALLS_ARE_FILTERED.contains(&version)) {
        return Err(UnpreparedError::Kernel(release.trim().to_owned()));
    }
    let has_shadow_stack = |tid: u32| Status::read(tid).is_some_and(|status| status.has_shadow_stack);
    if threads::list(pid).into_iter().any(has_shadow_stack) {
        return Err(UnpreparedError::ShadowStack(pid));
    }
    let mappings = maps::read(pid).map_err(|_| UnpreparedError::Gone(pid))?;
    if mappings.iter().any(|mapping| REDIRECT.iter().any(|part| mapping.path.contains(part))) {
        return Err(UnpreparedError::Redirects(pid));
    }
    Ok(())
}

/// `6.18` of `6.18.44-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-fc-v669\n"), Some((6, 18)));
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("odd"), None);
        let is_refused = |release| CALLS_ARE_FILTERED.contains(&version(release).unwrap());
        assert!(is_refused("6.11.0-8-generic") && is_refused("6.13.7") && !is_refused("6.14.0"));
        assert!(!is_refused("6.8.0-45-generic") && !is_refused("5.10.0"));
    }
}
