//! Reads the memory of a process by `/proc/PID/mem`.
//!
//! Never process_vm_readv for a copy: it pins the pages that it reads, and the kernel gives the copy a page of its own
//! for each pinned one.

use super::memory_files::{MemoryFiles, Page};
use super::working_set::{OtherPages, PagesOfMoment};
use std::io;
use std::sync::Arc;

/// The memory of a process. Clones share the open files.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    files: MemoryFiles,
    /// What changeable memory held at a moment, if only that is read.
    moment: Option<Arc<PagesOfMoment>>,
}

impl ProcessMemory {
    /// Opens the memory of the process with the thread `tid`, which may run.
    ///
    /// # Errors
    /// If this user may not trace the process.
    pub fn open(tid: u32) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory { files: MemoryFiles::open(tid)?, moment: None })
    }

    /// Opens it for writing as well.
    pub(super) fn open_writable(tid: u32) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory { files: MemoryFiles::open_writable(tid)?, moment: None })
    }

    /// The same memory as it was at a moment.
    pub(super) fn of_moment(&self, pages: PagesOfMoment) -> ProcessMemory {
        ProcessMemory { files: self.files.clone(), moment: Some(Arc::new(pages)) }
    }

    /// The files from which it is read.
    pub(super) fn files(&self) -> &MemoryFiles {
        &self.files
    }

    /// Says what is read of pages that were not read at that moment.
    pub(super) fn set_other_pages(&self, others: OtherPages) {
        if let Some(pages) = &self.moment {
            pages.set_others(others);
        }
    }

    /// What is read from here on may not be that of the moment.
    pub(super) fn note_change(&self) {
        if let Some(pages) = &self.moment {
            pages.note_change();
        }
    }

    /// Whether pages were needed that were not read at that moment, or may have changed.
    pub(super) fn is_incomplete(&self) -> bool {
        self.moment.as_ref().is_some_and(|pages| pages.is_incomplete())
    }

    /// Continues to read from another process with the same memory, in all clones.
    pub(super) fn continue_from(&self, other: &ProcessMemory) {
        self.files.continue_from(&other.files);
    }

    /// Copies as many bytes from `address` on as can be read, and returns how many: 0 once the process has ended.
    ///
    /// Mappings without the right to read are read as well, as zeros if they were never written. Skip them: the kernel
    /// allocates page tables for what is read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        match &self.moment {
            Some(pages) => pages.copy(address, into, &self.files),
            None => self.files.read_now(address, into),
        }
    }

    /// For each page of 4 KiB from `address` on, whether it was ever written: is present or swapped out. `true` where the kernel
    /// does not say.
    pub fn resident(&self, address: u64, pages: &mut [bool]) {
        self.files.resident(address, pages);
    }

    /// What the kernel says of each page of 4 KiB from `address` on.
    pub fn pages(&self, address: u64, pages: &mut [Page]) {
        self.files.pages(address, pages);
    }

    /// Writes bytes that must all be mapped.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.files.write(address, bytes)
    }
}
