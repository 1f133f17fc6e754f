//! A barrier that costs the threads on the other side nothing (membarrier(2)).

use core::sync::atomic::{AtomicBool, Ordering::*, fence};
use stackglass_host::system;

const GLOBAL: i32 = 1;
const PRIVATE_EXPEDITED: i32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Orders what this thread did before it against what it does afterwards, as seen by all running threads of this process, whose
/// own order only needs to be that of their instructions.
pub fn all_threads() {
    let errno = system::errno();
    // SAFETY: no pointers.
    let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
    if !REGISTERED.load(Acquire) && call(REGISTER_PRIVATE_EXPEDITED) {
        REGISTERED.store(true, Release);
    }
    if !call(PRIVATE_EXPEDITED) && !call(GLOBAL) {
        // A kernel without the call, or a filter: some thread may enter late.
        fence(SeqCst);
    }
    system::set_errno(errno);
}
