//! Reads the memory of a process by `/proc/PID/mem`.
//!
//! Never process_vm_readv for a copy: it pins the pages that it reads, and the kernel gives the copy a page of its own
//! for each pinned one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The memory of a process. Clones share one open file.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    file: Arc<File>,
}

impl ProcessMemory {
    /// Opens the memory of the process with the thread `tid`.
    pub(super) fn open(tid: u32) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory { file: Arc::new(File::open(format!("/proc/{tid}/mem"))?) })
    }

    /// Opens it for writing as well.
    pub(super) fn open_writable(tid: u32) -> io::Result<ProcessMemory> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(ProcessMemory { file: Arc::new(file) })
    }

    /// Copies as many bytes from `address` on as can be read, and returns how many: 0 once the process has ended.
    ///
    /// Mappings without the right to read are read as well, as zeros if they were never written. Skip them: the kernel
    /// allocates page tables for what is read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            match self.file.read_at(&mut into[done..], at) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }

    /// Writes bytes that must all be mapped.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, address)
    }
}
