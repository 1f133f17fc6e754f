//! CPU time that the kernel counted but no sample covers.
//!
//! Shares of the sampled time mislead if most time was not sampled: the important programs may be those that cannot be
//! sampled. So the summary refers to the kernel's count if it is known.

use stackglass_profile::RecordingInfo;

/// How reports name it.
pub(crate) const UNACCOUNTED: &str = "[unaccounted]";

/// Unaccounted time below this share of the kernel's count is ignored.
const NOTICEABLE: f64 = 0.05;
/// Unaccounted time below this, in nanoseconds, is ignored: starting and ending a program takes some.
const LEAST: u64 = 10_000_000;

/// Unaccounted CPU time in nanoseconds; 0 if it is unknown or too little to mention.
pub(crate) fn unaccounted(info: &RecordingInfo, seen: u64) -> u64 {
    let Some(kernel) = info.kernel_cpu else { return 0 };
    let missing = kernel.0.saturating_sub(seen);
    if missing > LEAST && missing as f64 > kernel.0 as f64 * NOTICEABLE { missing } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::Nanos;

    #[test]
    fn little_is_not_missing() {
        // The recorder's own time is that of another process.
        let info = |kernel: Option<u64>| RecordingInfo {
            kernel_cpu: kernel.map(|ms| Nanos(ms * 1_000_000)),
            own_cpu: Nanos(1_000_000_000),
            ..RecordingInfo::default()
        };
        let cases = [
            (Some(246), 11, 235),
            (Some(246), 236, 0),
            (Some(1000), 960, 0),
            (Some(12), 3, 0),
            (Some(5), 7, 0),
            (None, 7, 0),
        ];
        for (kernel, seen, missing) in cases {
            let found = unaccounted(&info(kernel), seen * 1_000_000);
            assert_eq!(found, missing * 1_000_000, "{seen} of {kernel:?}");
        }
    }
}
