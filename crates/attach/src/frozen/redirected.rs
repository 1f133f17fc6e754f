//! Threads that redirect their own system calls (Syscall User Dispatch), as Wine and other emulators do.
//!
//! The kernel sends such a thread SIGSYS in place of the call, before a tracer learns of it. The program would get an injected
//! call so, or end. Nothing of this is inherited by new tasks, so a copy may make calls.

use super::memory::ProcessMemory;
use crate::ptrace;

/// `SYSCALL_DISPATCH_FILTER_ALLOW` (prctl(2)).
const ALLOW: u8 = 0;

/// Whether the program would get the next call of the stopped thread `tid` in place of the kernel. That stays so while the
/// thread is stopped: only it changes its selector.
///
/// A range of exempt instructions counts for nothing, since an injected call comes from where it finds code. Kernels before 6.4 do
/// not tell.
pub(super) fn redirects_calls(tid: u32, memory: &ProcessMemory) -> bool {
    let config = ptrace::user_dispatch(tid).unwrap_or_default();
    if config.mode == 0 {
        return false;
    }
    let mut selector = [0; 1];
    let is_allowed =
        config.selector != 0 && memory.read(config.selector, &mut selector) == 1 && selector[0] == ALLOW;
    !is_allowed
}
