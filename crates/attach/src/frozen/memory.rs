//! Reads the memory of a process by `/proc/PID/mem`.
//!
//! Never process_vm_readv for a copy: it pins the pages that it reads, and the kernel gives the copy a page of its own
//! for each pinned one.

use super::working_set::{OtherPages, PagesOfMoment};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

const PAGE: u64 = 4096;
/// Bytes of an entry of `pagemap` (proc_pid_pagemap(5)), and the bits 62 and 63 in its last byte.
const ENTRY: usize = 8;
const PRESENT_OR_SWAPPED: u8 = 0xc0;

/// The memory of a process. Clones share the open files.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    files: Arc<RwLock<Files>>,
    /// What changeable memory held at a moment, if only that is read.
    moment: Option<Arc<PagesOfMoment>>,
}

#[derive(Clone, Debug)]
struct Files {
    memory: Arc<File>,
    /// Which pages there are (`pagemap`), if that can be read.
    pages: Option<Arc<File>>,
}

impl ProcessMemory {
    /// Opens the memory of the process with the thread `tid`.
    pub(super) fn open(tid: u32) -> io::Result<ProcessMemory> {
        let pages = File::open(format!("/proc/{tid}/pagemap")).ok().map(Arc::new);
        let memory = Arc::new(File::open(format!("/proc/{tid}/mem"))?);
        Ok(ProcessMemory { files: Arc::new(RwLock::new(Files { memory, pages })), moment: None })
    }

    /// Opens it for writing as well.
    pub(super) fn open_writable(tid: u32) -> io::Result<ProcessMemory> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        let files = Files { memory: Arc::new(file), pages: None };
        Ok(ProcessMemory { files: Arc::new(RwLock::new(files)), moment: None })
    }

    /// The same memory as it was at a moment.
    pub(super) fn of_moment(&self, pages: PagesOfMoment) -> ProcessMemory {
        ProcessMemory { files: self.files.clone(), moment: Some(Arc::new(pages)) }
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
        let files = other.files();
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
    }

    fn files(&self) -> Files {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Copies as many bytes from `address` on as can be read, and returns how many: 0 once the process has ended.
    ///
    /// Mappings without the right to read are read as well, as zeros if they were never written. Skip them: the kernel
    /// allocates page tables for what is read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        match &self.moment {
            Some(pages) => pages.copy(address, into, self),
            None => self.read_now(address, into),
        }
    }

    /// Copies what the memory holds now.
    pub(super) fn read_now(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        let memory = self.files().memory;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            match memory.read_at(&mut into[done..], at) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }

    /// For each page of 4 KiB from `address` on, whether it was ever written: is present or swapped out. `true` where the kernel
    /// does not say.
    pub fn resident(&self, address: u64, pages: &mut [bool]) {
        pages.fill(true);
        let Some(file) = self.files().pages else { return };
        let mut entries = vec![0; pages.len() * ENTRY];
        let read = file.read_at(&mut entries, address / PAGE * ENTRY as u64).unwrap_or(0);
        for (page, entry) in pages.iter_mut().zip(entries[..read].chunks_exact(ENTRY)) {
            *page = entry[ENTRY - 1] & PRESENT_OR_SWAPPED != 0;
        }
    }

    /// Writes bytes that must all be mapped.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.files().memory.write_all_at(bytes, address)
    }
}
