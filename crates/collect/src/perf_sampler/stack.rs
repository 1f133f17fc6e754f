//! A stack as the recording has it.

use stackglass_profile::StackId;

/// A stack of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stack {
    pub id: StackId,
    /// Why the stack is incomplete, 0 if it is complete.
    pub cut: u8,
}
