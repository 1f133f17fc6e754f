//! What counts now: one word that each call of the allocator loads. Scopes and the allocator both set it.

use core::sync::atomic::{AtomicU32, Ordering::*};

/// What counts now: some bits, and the numbers of scopes.
pub(crate) static ON: AtomicU32 = AtomicU32::new(0);

pub(crate) const ALLOCATIONS: u32 = 1;
pub(crate) const FREES: u32 = 2;
pub(crate) const PROBE: u32 = 4;
const ONE_THREAD_SCOPE: u32 = 1 << 4;
const ONE_PROCESS_SCOPE: u32 = 1 << 20;
const THREAD_SCOPES: u32 = ONE_PROCESS_SCOPE - ONE_THREAD_SCOPE;
const PROCESS_SCOPES: u32 = !(ONE_PROCESS_SCOPE - 1);

/// The value of [`ON`].
#[derive(Clone, Copy)]
pub(crate) struct Switch(pub(crate) u32);

impl Switch {
    #[inline(always)]
    pub(crate) fn load() -> Switch {
        Switch(ON.load(Relaxed))
    }

    #[inline(always)]
    pub(crate) fn is_off(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has_thread_scopes(self) -> bool {
        self.0 & THREAD_SCOPES != 0
    }

    pub(crate) fn has_process_scopes(self) -> bool {
        self.0 & PROCESS_SCOPES != 0
    }

    pub(crate) fn add_thread_scope() {
        ON.fetch_add(ONE_THREAD_SCOPE, SeqCst);
    }

    pub(crate) fn remove_thread_scope() {
        ON.fetch_sub(ONE_THREAD_SCOPE, SeqCst);
    }

    pub(crate) fn add_process_scope() {
        ON.fetch_add(ONE_PROCESS_SCOPE, SeqCst);
    }

    pub(crate) fn remove_process_scope() {
        ON.fetch_sub(ONE_PROCESS_SCOPE, SeqCst);
    }
}
