//! Files mapped into memory: the only unsafe code of this crate.
//!
//! Debug information is read in small parts of very large files, for which a mapping is fastest. Dropping the value releases
//! the pages.
#![allow(unsafe_code, reason = "files are mapped")]

use crate::Error;
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The bytes of a file, or bytes in memory.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    File(memmap2::Mmap),
    Memory(Vec<u8>),
}

impl Mapped {
    /// Maps a regular file. Devices, pipes and directories are refused without opening them, since that could block or
    /// have effects.
    pub fn open(path: &Path) -> Result<Mapped, Error> {
        let read_error = |source| Error::Read { path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(read_error)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(read_error)?;
        if !file.metadata().map_err(read_error)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        // SAFETY: the mapping is read-only and private. Rust requires that the bytes of a shared slice do not
        // change, which cannot be enforced for a file that others may write. Every reader of these bytes is made
        // for hostile input: bounds are checked at each read, and no byte is assumed equal when it is read again. A
        // change therefore leads to wrong names or an error. Compilers, linkers and package managers replace program
        // files, they do not rewrite them. Truncating the file raises SIGBUS; all tools that map program files accept
        // that.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(read_error)?;
        Ok(Mapped { path: path.to_owned(), bytes: Bytes::File(map) })
    }

    /// Bytes that are not in a file, with a name for messages.
    pub fn from_memory(name: &str, bytes: Vec<u8>) -> Mapped {
        Mapped { path: PathBuf::from(name), bytes: Bytes::Memory(bytes) }
    }

    /// Releases the pages of a part of a file that is not read again soon. Later reads are slower. Does nothing for
    /// bytes in memory.
    pub fn give_back(&self, part: &[u8]) {
        let Bytes::File(map) = &self.bytes else { return };
        let Some(offset) = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize) else { return };
        if offset.checked_add(part.len()).is_none_or(|end| end > map.len()) {
            return;
        }
        // SAFETY: the range lies in the mapping, as checked above. The mapping is private and never written, so a released
        // page is read from the file again with the same bytes; for shared slices, see `open`.
        let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, part.len()) };
    }

    /// Path of the file, or the name of the bytes.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::File(map) => map,
            Bytes::Memory(bytes) => bytes,
        }
    }
}
