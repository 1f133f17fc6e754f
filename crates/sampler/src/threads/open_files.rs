//! Open files about threads: opening one costs five times as much as reading it.
//!
//! Files stay open only in a descriptor table of the sampler's own (see `privilege`), and only for the threads that were
//! read last. Elsewhere every file is opened anew.

use crate::threads::files::ThreadFile;
use crate::threads::folder::ThreadFolder;
use crate::threads::table::ThreadTable;
use stackglass_host::SlotIndex;
use stackglass_proc_text::{SchedStat, ThreadState};

/// Threads whose files may be open.
const THREADS: usize = 256;

/// Which threads have open files. All zeros is none.
pub struct OpenFiles {
    /// Index + 1 of the thread, oldest at `next`.
    threads: [u32; THREADS],
    next: usize,
}

impl OpenFiles {
    /// A thread's state.
    pub fn state(
        &mut self,
        threads: &mut ThreadTable,
        folder: &ThreadFolder,
        index: SlotIndex,
    ) -> ThreadState {
        let mut text = [0u8; 256];
        let n = self.read(threads, folder, index, ThreadFile::State, &mut text);
        ThreadState::parse(&text[..n])
    }

    /// The kernel's account of a thread.
    pub fn sched_stat(
        &mut self,
        threads: &mut ThreadTable,
        folder: &ThreadFolder,
        index: SlotIndex,
    ) -> Option<SchedStat> {
        let mut text = [0u8; 64];
        let n = self.read(threads, folder, index, ThreadFile::SchedStat, &mut text);
        SchedStat::parse(&text[..n])
    }

    /// Reads a file about a thread: the number of bytes, 0 if it cannot be read.
    fn read(
        &mut self,
        threads: &mut ThreadTable,
        folder: &ThreadFolder,
        index: SlotIndex,
        which: ThreadFile,
        text: &mut [u8],
    ) -> usize {
        let thread = threads.get(index);
        if let Some(n) = thread.files.read(which, text) {
            return n;
        }
        let Some(file) = folder.open(thread.header.tid, which.name()) else { return 0 };
        let n = file.read_at(text, 0).min(text.len());
        if folder.keeps_open() {
            let is_new = thread.files.is_empty();
            thread.files.insert(which, file);
            if is_new {
                self.insert(threads, index);
            }
        }
        n
    }

    /// Adds a thread; the oldest one loses its files.
    fn insert(&mut self, threads: &mut ThreadTable, index: SlotIndex) {
        let oldest = core::mem::replace(&mut self.threads[self.next], u32::from(index.0) + 1);
        self.next = (self.next + 1) % THREADS;
        if let Some(evicted) = oldest.checked_sub(1).filter(|evicted| *evicted != u32::from(index.0)) {
            threads.get(SlotIndex(evicted as u16)).files.close();
        }
    }
}
