//! A note for programs that ended before there were enough samples to compare functions.

use crate::queries::cpu_tree::CpuTree;
use crate::text::numbers::{counted, duration_text, setting_text};
use stackglass_profile::{End, Nanos, Recording};

/// Fewer samples deserve a note: the error of a half is a quarter then.
const FEW: u64 = 16;
/// Shortest delay that `record` accepts.
const SHORTEST_DELAY: u64 = 100_000;

/// The note, if the program has ended early.
pub(super) fn note(recording: &Recording, tree: &CpuTree<'_>) -> Option<String> {
    let info = &recording.info;
    let cpu = tree.cpu();
    let has_ended = matches!(info.end, Some(End::Exit(_) | End::Signal(_)));
    // Time that nothing sampled has a note of its own.
    if cpu.hits >= FEW
        || tree.unaccounted > 0
        || !has_ended
        || info.wall == Nanos(0)
        || info.delay == Nanos(0)
        || recording.is_walltime()
    {
        return None;
    }
    let seen = match cpu.hits {
        0 => format!("no samples on a CPU in {}", duration_text(info.wall.0)),
        hits => {
            format!("only {} in {} of CPU time", counted(hits, "sample", "samples"), duration_text(cpu.time))
        }
    };
    let more = match info.delay.0 > SHORTEST_DELAY {
        true => format!(", or sample more often than every {} (--delay 100us)", setting_text(info.delay.0)),
        false => String::new(),
    };
    Some(format!("{seen}, too few to compare functions: give the program more work, run it in a loop{more}"))
}
