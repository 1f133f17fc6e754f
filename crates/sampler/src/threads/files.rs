//! The files about one thread that stay open.

use stackglass_host::system::Fd;

/// A file in `/proc/self/task/TID`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadFile {
    /// `syscall`: the thread's state.
    State,
    /// `schedstat`: how long the thread waited for processors.
    SchedStat,
}

impl ThreadFile {
    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            ThreadFile::State => b"syscall",
            ThreadFile::SchedStat => b"schedstat",
        }
    }
}

/// The open files of one thread: descriptor + 1 for each [`ThreadFile`], 0 if it is not open.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadFiles([i32; 2]);

impl ThreadFiles {
    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        *self == ThreadFiles::default()
    }

    /// Reads a file, if it is open: the number of bytes, 0 if it cannot be read.
    pub(crate) fn read(&self, which: ThreadFile, text: &mut [u8]) -> Option<usize> {
        let file = self.0[which as usize].checked_sub(1).filter(|file| *file >= 0)?;
        // SAFETY: the descriptor is open until `close`; the kernel writes at most the buffer's length.
        let n = unsafe { libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0) };
        Some(usize::try_from(n).unwrap_or(0).min(text.len()))
    }

    /// Keeps a file open.
    pub(crate) fn insert(&mut self, which: ThreadFile, file: Fd) {
        self.0[which as usize] = file.raw() + 1;
        core::mem::forget(file);
    }

    /// Closes what is open.
    pub fn close(&mut self) {
        for file in &mut self.0 {
            if *file != 0 {
                // SAFETY: the descriptor is open, was forgotten by its `Fd`, and is forgotten here.
                unsafe { libc::close(*file - 1) };
                *file = 0;
            }
        }
    }
}
