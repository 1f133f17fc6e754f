//! Why stacks are incomplete, in words, and what helps.

use crate::kinds;
use stackglass_profile::{Cut, Recording, Sample};

/// Why a stack is incomplete or missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CutReason {
    /// The number that recordings hold.
    pub cut: Cut,
    /// A few words, as in `[no stack: too short]`.
    pub word: &'static str,
    /// What it means; follows a percentage.
    pub meaning: &'static str,
    /// What helps; empty if nothing is known to help.
    pub remedy: &'static str,
}

const fn reason(cut: Cut, word: &'static str, meaning: &'static str, remedy: &'static str) -> CutReason {
    CutReason { cut, word, meaning, remedy }
}

/// All reasons, by number. Unwinding gives these numbers and recordings store them, so they never change their meaning.
pub(crate) const CUT_REASONS: &[CutReason] = &[
    reason(
        Cut::DEPTH,
        "depth",
        "deeper than 4096 frames",
        "the outermost frames are missing, the innermost are correct",
    ),
    reason(
        Cut::NO_MODULE,
        "no module",
        "in code of no known file: generated at run time, or in a library loaded just before",
        "if the program generates code, have it keep frame pointers there",
    ),
    reason(
        Cut::NO_RULE,
        "no unwind tables",
        "in code without unwind tables",
        "callers are found by frame pointers only",
    ),
    reason(Cut::UNREADABLE_STACK, "stack unreadable", "with unreadable stacks", ""),
    reason(Cut::STACK_DID_NOT_GROW, "stack inconsistent", "with inconsistent stacks", ""),
    reason(Cut::RBP_UNKNOWN, "frame pointer lost", "of sleeping threads with an unknown frame pointer", ""),
    reason(Cut::RULE_NOT_SUPPORTED, "unwind rule unsupported", "in code with an unsupported unwind rule", ""),
    reason(
        Cut::BLOCKED,
        "signal blocked",
        "not sampled, because the sampling signal was blocked",
        "the C library blocks all signals while it starts or ends threads and processes; a program should not block \
         SIGURG for long, or SIGWINCH if it uses SIGURG",
    ),
    reason(Cut::NOT_TAKEN, "signal lost", "not sampled, because the sampling signal did not arrive", ""),
    reason(
        Cut::ENDED,
        "too short",
        "run by threads after their last tick, until they ended",
        "a shorter --delay samples more of them",
    ),
    reason(
        Cut::IN_KERNEL,
        "in the kernel",
        "spent in the kernel (system calls, page faults), where sampling is not permitted",
        "run as root or set kernel.perf_event_paranoid to 1 to see the calls",
    ),
    reason(
        Cut::SHORT,
        "too short",
        "run in pieces of less than one --delay, between two samples",
        "a shorter --delay samples more, but not what the kernel takes to switch threads",
    ),
    reason(Cut::BETWEEN_PROGRAMS, "start or end", "spent in the kernel to start or end programs", ""),
    reason(
        Cut::DEEP,
        "deep",
        "on stacks deeper than the 63 KiB that the kernel copies",
        "--sampler preload takes stacks of any depth",
    ),
    reason(
        Cut::LOST,
        "lost",
        "lost, because this machine was too busy to read its stacks in time",
        "a longer --delay loses fewer",
    ),
    reason(
        Cut::ABSENT,
        "stack not in memory",
        "on stacks that were not in memory at that moment, as while the kernel starts a program or adds a page",
        "",
    ),
    reason(
        Cut::IN_CALL,
        "in unfinished system calls",
        "spent in system calls that had not ended when sampling did: a signal would cut them short",
        "`stackglass record` as root, without --sampler preload, shows the calls",
    ),
];

/// The reason with this number; `None` for numbers of later versions.
pub(crate) fn cut_reason(cut: Cut) -> Option<&'static CutReason> {
    CUT_REASONS.iter().find(|reason| reason.cut == cut)
}

/// What a reason means, as it follows a percentage, and what helps; empty if nothing is known to help.
pub fn cut_meaning(cut: Cut) -> (&'static str, &'static str) {
    let unknown = ("for a reason that this version does not know", "");
    cut_reason(cut).map_or(unknown, |reason| (reason.meaning, reason.remedy))
}

/// Why the stack of a sample is incomplete or missing; `None` if it is complete.
pub fn why_incomplete(recording: &Recording, sample: &Sample) -> Option<Cut> {
    sample.cut.filter(|cut| *cut != Cut::NO_RULE || !is_complete(recording, sample))
}

/// Whether a stack that was followed without unwind tables is complete: it begins where threads begin, or in Go, which
/// keeps frame pointers.
pub(crate) fn is_complete(recording: &Recording, sample: &Sample) -> bool {
    let (mut stack, mut outermost) = (sample.stack, None);
    while let Some((caller, location)) = recording.stacks.frame(stack) {
        (stack, outermost) = (caller, Some(location));
    }
    let frame = outermost.and_then(|location| recording.symbols.frames_of(location).last());
    frame.is_some_and(|frame| kinds::is_start(frame, false) || frame.file.ends_with(".go"))
}

/// The name of time whose samples have no stack.
pub(crate) fn no_stack_text(cut: Option<Cut>) -> String {
    match cut {
        None => "[fork, exec and exit]".to_owned(),
        Some(cut) => {
            format!("[no stack: {}]", cut_reason(cut).map_or("unknown reason", |reason| reason.word))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_by_number() {
        assert!(CUT_REASONS.iter().map(|reason| reason.cut).eq(Cut::ALL));
        for reason in CUT_REASONS {
            assert_eq!(cut_reason(reason.cut), Some(reason));
        }
        assert_eq!(cut_reason(Cut(0)), None);
    }
}
