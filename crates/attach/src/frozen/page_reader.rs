//! Reads pages of a stopped process: what is looked up before it stops, and which stacks it has.

use super::error::FreezeError;
use super::memory::ProcessMemory;
use super::sleeper;
use super::traced::{StoppedThreads, TracedThread};
use super::working_set::{OtherPages, PagesOfMoment, WorkingSet};
use stackglass_procfs::maps::{self, Mapping};
use stackglass_procfs::{ImageKey, Status, process, smaps};

/// Flags of mappings whose faults a monitor handles, in `smaps`.
const WATCHED: [&str; 3] = ["um", "uw", "ui"];

/// What is looked up before the process stops.
pub(super) struct PageReader<'a> {
    /// A thread that has not ended.
    pub(super) living: u32,
    /// What the process runs.
    pub(super) image: Option<ImageKey>,
    memory: ProcessMemory,
    set: &'a WorkingSet,
}

impl PageReader<'_> {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// If that is not allowed, or reads of other pages would wait for the program.
    pub(super) fn open(
        pid: u32,
        set: &WorkingSet,
        others: OtherPages,
    ) -> Result<PageReader<'_>, FreezeError> {
        let image = ImageKey::read(pid);
        if others == OtherPages::Live && is_watched(pid) {
            let name = Status::read(pid).map_or_else(String::new, |status| status.name);
            return Err(FreezeError::Watched { pid, name });
        }
        let living = process::living_thread(pid).ok_or(FreezeError::Gone { pid })?;
        let memory = ProcessMemory::open(living).map_err(FreezeError::cannot_read)?;
        PagesOfMoment::load(set, &maps::read(living).map_err(FreezeError::cannot_read)?, memory.files());
        Ok(PageReader { living, image, memory, set })
    }

    /// Reads the pages that are wanted while the process stands still.
    pub(super) fn read(&self, mappings: &[Mapping], stopped: &StoppedThreads<'_>) -> ProcessMemory {
        let stacks = stack_pointers(stopped);
        self.memory.of_moment(PagesOfMoment::read(self.set, mappings, self.memory.files(), &stacks))
    }
}

/// Whether a monitor handles faults of memory of the process (userfaultfd(2)).
pub(super) fn is_watched(pid: u32) -> bool {
    smaps::read_with_flags(pid, &WATCHED).is_ok_and(|starts| !starts.is_empty())
}

/// The stack pointers of all threads that stopped or sleep.
fn stack_pointers(stopped: &StoppedThreads<'_>) -> Vec<u64> {
    let of = |thread: &TracedThread| match (&thread.registers, thread.sleeping) {
        (Some(registers), _) => Some(registers.rsp),
        (None, Some(sleeping)) => Some(sleeping.place().sp),
        (None, None) => thread.registers_in_call().map(|registers| registers[sleeper::SP]),
    };
    stopped.threads.iter().filter_map(of).collect()
}
