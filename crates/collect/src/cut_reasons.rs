//! Asserts that walks, streams and recordings use the same numbers for cut reasons.

use stackglass_profile::Cut;
use stackglass_wire::cut;

const _: () = {
    assert!(cut::BLOCKED == Cut::BLOCKED.0);
    assert!(cut::NOT_TAKEN == Cut::NOT_TAKEN.0);
    assert!(cut::ENDED == Cut::ENDED.0);
    assert!(cut::IN_KERNEL == Cut::IN_KERNEL.0);
    assert!(cut::SHORT == Cut::SHORT.0);
    assert!(cut::BETWEEN_PROGRAMS == Cut::BETWEEN_PROGRAMS.0);
    assert!(cut::DEEP == Cut::DEEP.0);
    assert!(cut::LOST == Cut::LOST.0);
    assert!(cut::ABSENT == Cut::ABSENT.0);
    assert!(cut::IN_CALL == Cut::IN_CALL.0);
};

#[cfg(feature = "launch")]
const _: () = {
    use stackglass_unwind::Cut as Walk;
    assert!(Walk::Depth as u8 == Cut::DEPTH.0);
    assert!(Walk::NoModule as u8 == Cut::NO_MODULE.0);
    assert!(Walk::NoRule as u8 == Cut::NO_RULE.0);
    assert!(Walk::UnreadableStack as u8 == Cut::UNREADABLE_STACK.0);
    assert!(Walk::StackDidNotGrow as u8 == Cut::STACK_DID_NOT_GROW.0);
    assert!(Walk::RbpUnknown as u8 == Cut::RBP_UNKNOWN.0);
    assert!(Walk::RuleNotSupported as u8 == Cut::RULE_NOT_SUPPORTED.0);
};
