//! Files about a thread that are read often and therefore stay open: opening one costs five times reading it.
//!
//! Only in a descriptor table of our own (see `privilege`), and only for the threads looked at last; elsewhere
//! every file is opened anew.

use crate::memory::{LOOKERS, Memory};
use crate::sampler::Sampler;
use stackglass_host::SlotIndex;
use stackglass_sampling::SchedStat;

/// A file in `/proc/self/task/TID`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    /// `syscall`: where it sleeps.
    Place,
    /// `schedstat`: how long it waited for processors.
    Waits,
}

impl About {
    fn name(self) -> &'static [u8] {
        match self {
            About::Place => b"syscall",
            About::Waits => b"schedstat",
        }
    }
}

impl Sampler {
    /// Reads a file about a thread; the bytes read, 0 when it cannot be read.
    pub(crate) fn read_about(&mut self, index: SlotIndex, what: About, text: &mut [u8]) -> usize {
        let Memory { roster, tasks, lookers, next_looker, .. } = &mut *self.memory;
        let thread = roster.get(index);
        let kept = thread.files[what as usize];
        if kept != 0 {
            // SAFETY: the descriptor is open and ours; the kernel writes at most the buffer's length.
            let n = unsafe { libc::pread(kept - 1, text.as_mut_ptr().cast(), text.len(), 0) };
            return n.max(0) as usize;
        }
        let Some(file) = tasks.open(thread.tid, what.name()) else { return 0 };
        let n = file.read_at(text, 0);
        if tasks.keeps_open() {
            let seated = thread.files != [0; 2];
            thread.files[what as usize] = file.raw() + 1;
            core::mem::forget(file);
            if !seated {
                let seat = core::mem::replace(&mut lookers[*next_looker], index.0 as u32 + 1);
                *next_looker = (*next_looker + 1) % LOOKERS;
                if let Some(evicted) = seat.checked_sub(1).filter(|e| *e != index.0 as u32) {
                    self.close_files(SlotIndex(evicted as u16));
                }
            }
        }
        n
    }

    /// How long a thread has waited for processors, ns.
    pub(crate) fn waited(&mut self, index: SlotIndex) -> Option<u64> {
        let mut text = [0u8; 64];
        let n = self.read_about(index, About::Waits, &mut text);
        SchedStat::parse(&text[..n.min(64)]).map(|stat| stat.waited)
    }

    /// Closes what is open about a thread.
    pub(crate) fn close_files(&mut self, index: SlotIndex) {
        for file in &mut self.memory.roster.get(index).files {
            if *file != 0 {
                // SAFETY: the descriptor is open, ours, and forgotten with this.
                unsafe { libc::close(*file - 1) };
                *file = 0;
            }
        }
    }
}
