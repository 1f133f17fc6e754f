//! The open files of a process's memory, shared by all who read it. What they hold is what the memory holds now.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

const PAGE: u64 = 4096;
/// Bytes of an entry of `pagemap` (proc_pid_pagemap(5)), and its bits: the page is in memory, swapped out, of a file or of shared
/// memory, mapped once only.
const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;

/// A page of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    /// The process has none here, or has not used it.
    Absent,
    /// It is the process's own: written, or zeros.
    Own,
    /// It belongs to a file or to shared memory.
    OfFile {
        /// No other process has it now.
        is_exclusive: bool,
    },
    /// The kernel does not say.
    Unknown,
}

impl Page {
    fn from_entry(entry: u64) -> Page {
        match entry {
            _ if entry & (PRESENT | SWAPPED) == 0 => Page::Absent,
            _ if entry & OF_FILE == 0 => Page::Own,
            _ => Page::OfFile { is_exclusive: entry & EXCLUSIVE != 0 },
        }
    }
}

/// The files of the memory of a process. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct MemoryFiles(Arc<RwLock<Files>>);

#[derive(Clone, Debug)]
struct Files {
    /// The thread by which they were opened.
    tid: u32,
    memory: Arc<File>,
    /// Which pages there are (`pagemap`), if that can be read.
    pages: Option<Arc<File>>,
}

impl MemoryFiles {
    /// Opens the memory of the process with the thread `tid`.
    pub(super) fn open(tid: u32) -> io::Result<MemoryFiles> {
        let pages = File::open(format!("/proc/{tid}/pagemap")).ok().map(Arc::new);
        let memory = Arc::new(File::open(format!("/proc/{tid}/mem"))?);
        Ok(MemoryFiles(Arc::new(RwLock::new(Files { tid, memory, pages }))))
    }

    /// Opens it for writing as well.
    pub(super) fn open_writable(tid: u32) -> io::Result<MemoryFiles> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(MemoryFiles(Arc::new(RwLock::new(Files { tid, memory: Arc::new(file), pages: None }))))
    }

    /// Continues with the files of another process with the same memory, in all clones.
    pub(super) fn continue_from(&self, other: &MemoryFiles) {
        let files = other.files();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = files;
    }

    fn files(&self) -> Files {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The thread whose memory this is now.
    pub(super) fn tid(&self) -> u32 {
        self.files().tid
    }

    /// Where the kernel says which pages there are (`pagemap`), if that can be read.
    pub(super) fn page_map(&self) -> Option<Arc<File>> {
        self.files().pages
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

    /// What the kernel says of each page of 4 KiB from `address` on.
    pub(super) fn pages(&self, address: u64, pages: &mut [Page]) {
        pages.fill(Page::Unknown);
        let Some(file) = self.files().pages else { return };
        let mut entries = vec![0; pages.len() * ENTRY];
        let read = file.read_at(&mut entries, address / PAGE * ENTRY as u64).unwrap_or(0);
        for (page, entry) in pages.iter_mut().zip(entries[..read].as_chunks::<ENTRY>().0) {
            *page = Page::from_entry(u64::from_le_bytes(*entry));
        }
    }

    /// For each page of 4 KiB from `address` on, whether it was ever written: is present or swapped out. `true` where the kernel
    /// does not say.
    pub(super) fn resident(&self, address: u64, resident: &mut [bool]) {
        let mut pages = vec![Page::Unknown; resident.len()];
        self.pages(address, &mut pages);
        resident.iter_mut().zip(pages).for_each(|(resident, page)| *resident = page != Page::Absent);
    }

    /// Writes bytes that must all be mapped.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.files().memory.write_all_at(bytes, address)
    }
}
