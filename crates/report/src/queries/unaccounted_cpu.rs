//! Processor time that the kernel counted and no sample holds.
//!
//! Shares of what was seen mislead where most was not: the programs that count may be those that
//! cannot be sampled. So the first screen measures against the kernel's account where it is known.

use stackglass_profile::About;

/// Share of the kernel's account below which nothing is said to be missing.
const NOTICEABLE: f64 = 0.05;
/// Processor time below which it is not either: a start and an end take some.
const LEAST: u64 = 10_000_000;

/// Processor time beyond what was seen; 0 where it is unknown or too little to speak of.
pub(crate) fn unaccounted(about: &About, seen: u64) -> u64 {
    let Some(kernel) = about.kernel_cpu else { return 0 };
    // What sampling itself used is in the kernel's figure and not in ours.
    let missing = kernel.0.saturating_sub(seen).saturating_sub(about.own_cpu.0);
    if missing > LEAST && missing as f64 > kernel.0 as f64 * NOTICEABLE { missing } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::Nanos;

    #[test]
    fn little_is_not_missing() {
        let about = |kernel: Option<u64>, own: u64| About {
            kernel_cpu: kernel.map(|ms| Nanos(ms * 1_000_000)),
            own_cpu: Nanos(own * 1_000_000),
            ..About::default()
        };
        let cases = [
            (Some(246), 0, 11, 235),
            (Some(246), 20, 11, 215),
            (Some(246), 236, 11, 0),
            (Some(1000), 0, 960, 0),
            (Some(12), 0, 3, 0),
            (Some(5), 0, 7, 0),
            (None, 0, 7, 0),
        ];
        for (kernel, own, seen, missing) in cases {
            let found = unaccounted(&about(kernel, own), seen * 1_000_000);
            assert_eq!(found, missing * 1_000_000, "{seen} of {kernel:?}, {own} ours");
        }
    }
}
