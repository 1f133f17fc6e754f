//! Copies of executables in memory, so that none stays open during a recording.
//!
//! An open file keeps its file system mounted, its space in use after it was deleted, and has leases refused. Programs that are built, run
//! and deleted, or that run from an image, would meet that. Files of the system stay open: nobody gives them back while programs run.
//! So do large ones, and those that are not in the page cache: a copy of these would take too long, or read the disk.

use crate::memory_file::memory_file;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Folders of the system's own files.
const SYSTEM: &[&str] = &["/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin"];
/// Files up to this size are read from the disk if need be.
const READ: u64 = 16 << 20;
/// Larger files stay open.
const LARGEST: u64 = 64 << 20;
/// Bytes of all copies.
const MOST: u64 = 512 << 20;
/// Bytes that are copied at once.
const PART: usize = 1 << 20;

/// Bytes of all copies that there are.
static COPIED: AtomicU64 = AtomicU64::new(0);

/// A copy of a file, which no file system has.
pub(super) struct FileCopy {
    file: File,
    size: u64,
}

impl FileCopy {
    /// Copies the file that has this path, unless it had better stay open.
    pub(super) fn from_file(file: &File, path: &Path) -> Option<FileCopy> {
        let meta = file.metadata().ok()?;
        let size = meta.len();
        if size > LARGEST || is_of_system(path, &meta) {
            return None;
        }
        let mut copy = FileCopy { file: memory_file(c"stackglass-program", 0).ok()?, size };
        // From here on, its bytes count until it is dropped.
        let is_room = COPIED.fetch_add(size, Relaxed) <= MOST;
        (is_room && copy_bytes(file, &mut copy.file, size).is_ok()).then_some(copy)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for FileCopy {
    fn drop(&mut self) {
        COPIED.fetch_sub(self.size, Relaxed);
    }
}

/// Whether a file lies in a folder of the system, on the file system of the root.
fn is_of_system(path: &Path, meta: &Metadata) -> bool {
    let root = || std::fs::metadata("/").is_ok_and(|root| root.dev() == meta.dev());
    SYSTEM.iter().any(|folder| path.starts_with(folder)) && root()
}

/// Copies all bytes. A large file that is not in the page cache is an error.
fn copy_bytes(from: &File, to: &mut File, size: u64) -> io::Result<()> {
    if size <= READ {
        let copied = io::copy(&mut from.take(size), to)?;
        return if copied == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
    }
    let mut part = vec![0u8; PART];
    let mut done = 0;
    while done < size {
        let vector = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
        // SAFETY: the kernel writes only to the live bytes of `part`.
        let read =
            unsafe { libc::preadv2(from.as_raw_fd(), &vector, 1, done as libc::off_t, libc::RWF_NOWAIT) };
        match usize::try_from(read) {
            Err(_) => return Err(io::Error::last_os_error()),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                to.write_all(&part[..read])?;
                done += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_copy_has_all_bytes_and_files_of_the_system_stay_open() {
        let folder = tempfile::tempdir().unwrap();
        for size in [0, 1000, PART * 20 + 5] {
            let path = folder.path().join(size.to_string());
            let bytes: Vec<u8> = (0..size).map(|index| (index * 7 / 8) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let file = File::open(&path).unwrap();
            let copy = FileCopy::from_file(&file, &path).expect("it is cached");
            let mut read = vec![1; size + 1];
            assert_eq!(copy.file().read_at(&mut read, 0).unwrap(), size);
            assert!(read[..size] == bytes);
        }
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        let file = File::open(&shell).unwrap();
        assert!(FileCopy::from_file(&file, &shell).is_none());
        // The same file by a name that is not of the system.
        assert!(FileCopy::from_file(&file, Path::new("/image/bin/sh")).is_some());
    }
}
