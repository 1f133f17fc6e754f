//! Why stacks are incomplete, in words, and what helps.

use stackglass_profile::Cut;

/// Why a stack is incomplete or missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutReason {
    /// The number that recordings hold.
    pub cut: Cut,
    /// A few words, as in `[no stack: too short]`.
    pub word: &'static str,
    /// What it means; follows a percentage.
    pub meaning: &'static str,
    /// What helps; empty if nothing is known to help.
    pub remedy: &'static str,
}

const fn reason(number: u8, word: &'static str, meaning: &'static str, remedy: &'static str) -> CutReason {
    CutReason { cut: Cut(number), word, meaning, remedy }
}

/// All reasons, by number. Unwinding gives these numbers and recordings store them, so they never change their meaning.
pub(super) const CUT_REASONS: &[CutReason] = &[
    reason(
        1,
        "depth",
        "deeper than 4096 frames",
        "the outermost frames are missing, the innermost are correct",
    ),
    reason(
        2,
        "no module",
        "in code of no known file: generated at run time, or in a library loaded just before",
        "if the program generates code, have it keep frame pointers there",
    ),
    reason(
        3,
        "no unwind tables",
        "in code without unwind tables",
        "callers are found by frame pointers only; Rust: -C force-unwind-tables=yes, C: \
         -fasynchronous-unwind-tables",
    ),
    reason(4, "stack unreadable", "with unreadable stacks", ""),
    reason(5, "stack inconsistent", "with inconsistent stacks", ""),
    reason(6, "frame pointer lost", "of sleeping threads with an unknown frame pointer", ""),
    reason(7, "unwind rule unsupported", "in code with an unsupported unwind rule", ""),
    reason(
        100,
        "signal blocked",
        "not sampled, because the thread blocked the sampling signal",
        "unblock SIGURG, or SIGWINCH if the program uses SIGURG",
    ),
    reason(101, "signal lost", "not sampled, because the program consumed the sampling signal", ""),
    reason(
        102,
        "too short",
        "not sampled, in threads that ended before the next tick",
        "a shorter --delay samples more of them",
    ),
    reason(
        104,
        "in the kernel",
        "spent in the kernel (system calls, page faults), where sampling is not permitted",
        "run as root or set kernel.perf_event_paranoid to 1 to see the calls",
    ),
    reason(
        105,
        "too short",
        "in threads that ran for less than one --delay",
        "a shorter --delay samples more of them",
    ),
    reason(106, "start or end", "spent in the kernel to start or end programs", ""),
    reason(
        107,
        "deep",
        "on stacks deeper than the 63 KiB that the kernel copies",
        "--sampler preload takes stacks of any depth",
    ),
];

/// The reason with this number; `None` for numbers of later versions.
pub(super) fn cut_reason(cut: Cut) -> Option<&'static CutReason> {
    CUT_REASONS.iter().find(|reason| reason.cut == cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_by_number() {
        let numbers: Vec<u8> = CUT_REASONS.iter().map(|reason| reason.cut.0).collect();
        assert_eq!(
            numbers,
            [1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 104, 105, 106, 107],
            "those of crates unwind and wire"
        );
        for reason in CUT_REASONS {
            assert_eq!(cut_reason(reason.cut), Some(reason));
        }
        assert_eq!(cut_reason(Cut(0)), None);
    }
}
