//! From which share of the time on something is shown or noted, and what the shares refer to.

use stackglass_profile::Recording;

/// Branches below this share of CPU time are hidden.
pub(super) const LEAST_SHOWN: f64 = 0.005;
/// Minimum share for a note.
pub(super) const NOTICEABLE: f64 = 0.01;
/// Minimum share for a note on something that only makes the result coarser.
pub(super) const CONSIDERABLE: f64 = 0.05;
/// Prefix of the counter label of recordings made from outside, by perf events.
pub(super) const FROM_OUTSIDE: &str = "sampler: perf events";

/// The quantity that percentages refer to.
pub(super) fn whole(recording: &Recording) -> &'static str {
    match () {
        () if !has_times(recording) => "all samples",
        () if recording.is_walltime() => "time",
        () => "CPU time",
    }
}

/// Whether samples have times. Converted ones have none, and no delay.
pub(super) fn has_times(recording: &Recording) -> bool {
    recording.info.delay.0 > 0 || recording.samples.is_empty()
}
