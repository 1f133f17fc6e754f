//! Why stacks are cut, in words, and what helps.

use stackglass_profile::Cut;

/// Why stacks are cut, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutReason {
    /// The number that recordings hold.
    pub cut: Cut,
    /// One word or two, as in `cut: depth`.
    pub word: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What helps, empty where nothing is known to.
    pub remedy: &'static str,
}

const fn reason(cut: Cut, word: &'static str, meaning: &'static str, remedy: &'static str) -> CutReason {
    CutReason { cut, word, meaning, remedy }
}

/// All reasons, by number. The numbers are those that unwinding gives and recordings hold; they
/// never change their meaning.
pub(super) const CUT_REASONS: &[CutReason] = &[
    reason(
        Cut::DEPTH,
        "depth",
        "deeper than 4096 frames",
        "the outermost frames are missing, the innermost are right",
    ),
    reason(
        Cut::NO_MODULE,
        "no module",
        "code of no known file: made at run time, or of a library opened just before",
        "if the program compiles code as it runs, have it keep frame pointers there",
    ),
    reason(
        Cut::NO_RULE,
        "no unwind tables",
        "code without unwind tables",
        "callers are told where frame pointers lead to them; Rust: -C force-unwind-tables=yes, C: \
         -fasynchronous-unwind-tables",
    ),
    reason(Cut::UNREADABLE_STACK, "stack unreadable", "the stack could not be read", ""),
    reason(Cut::STACK_DID_NOT_GROW, "stack odd", "the stack did not lead outwards", ""),
    reason(
        Cut::RBP_UNKNOWN,
        "frame pointer lost",
        "a sleeping thread's frame pointer could not be worked out",
        "",
    ),
    reason(Cut::RULE_NOT_SUPPORTED, "unwind rule unknown", "an unwind rule of a rare kind", ""),
    reason(
        Cut::BLOCKED,
        "signal held back",
        "not seen, because the thread held the sampling signal back",
        "let SIGURG (SIGWINCH, if the program uses that) through its signal mask",
    ),
    reason(
        Cut::NOT_TAKEN,
        "signal not taken",
        "not seen, because the signal was refused or taken away by the program",
        "",
    ),
    reason(
        Cut::ENDED,
        "too short",
        "not seen, in threads that ended before the next tick",
        "a shorter --delay sees more",
    ),
    reason(
        Cut::IN_KERNEL,
        "in the kernel",
        "spent in the kernel (system calls, page faults), which may not be sampled here",
        "run as root, or set kernel.perf_event_paranoid to 1, to see in which calls",
    ),
    reason(
        Cut::SHORT,
        "too short",
        "of threads that ran for less than one --delay",
        "a shorter --delay sees more",
    ),
    reason(Cut::BETWEEN_PROGRAMS, "start or end", "spent in the kernel, starting or ending a program", ""),
    reason(
        Cut::DEEP,
        "deep",
        "of stacks deeper than the 63 KiB that the kernel copies, whose outer part changes",
        "--sampler preload takes stacks of any depth",
    ),
];

/// What is known of a reason; `None` for numbers of later versions.
pub(super) fn cut_reason(cut: Cut) -> Option<&'static CutReason> {
    CUT_REASONS.iter().find(|reason| reason.cut == cut)
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
