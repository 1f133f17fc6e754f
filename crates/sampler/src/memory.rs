//! The sampler's working memory: one mapping for as long as the sampler runs, touched lazily.

use crate::module_events::LoadedModules;
use crate::signals::call_ends::SyscallInstructions;
use crate::signals::open_timers::Timers;
use crate::signals::pending::PendingSignals;
use crate::sleep::reader::SleepReader;
use crate::threads::folder::ScanBuffer;
use crate::threads::open_files::OpenFiles;
use crate::threads::recently_exited::RecentlyExited;
use crate::threads::table::ThreadTable;
use stackglass_host::system;

/// The parts that need much memory. All zeros is the beginning of each.
pub struct Memory {
    pub(crate) threads: ThreadTable,
    pub(crate) exited: RecentlyExited,
    pub(crate) scan_buffer: ScanBuffer,
    pub(crate) files: OpenFiles,
    pub(crate) signals: PendingSignals,
    pub(crate) timers: Timers,
    pub(crate) sleep: SleepReader,
    pub(crate) syscalls: SyscallInstructions,
    pub(crate) modules: LoadedModules,
}

impl Memory {
    /// Maps it; `None` if the kernel refuses.
    pub fn map() -> Option<&'static mut Memory> {
        let at = system::map_private(size_of::<Memory>()).cast::<Memory>();
        // SAFETY: null, or a new mapping that no other code knows, large and aligned enough. All zeros is a value of every
        // field: they are made of numbers, bools, arrays of these, and `MaybeUninit`.
        let memory = unsafe { at.as_mut() }?;
        memory.sleep.init();
        // SAFETY: advice on the mapping just made; a forked child has no sampler.
        unsafe { libc::madvise(at.cast(), size_of::<Memory>(), libc::MADV_DONTFORK) };
        Some(memory)
    }

    /// Unmaps it.
    ///
    /// # Safety
    /// `memory` must come from [`Memory::map`] and must not be used afterwards.
    pub unsafe fn unmap(memory: *mut Memory) {
        // SAFETY: by the caller.
        unsafe { system::munmap(memory.cast(), size_of::<Memory>()) };
    }
}
