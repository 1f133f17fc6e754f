//! Files mapped into memory: the one place of this crate that is not checked by the compiler.
//!
//! Debug information is read in small parts of very large files, so mapping is what makes it
//! cheap. Pages are given back when the value is dropped.
#![allow(unsafe_code, reason = "files are mapped")]

use crate::Error;
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The bytes of a file, or bytes that were made in memory.
#[derive(Debug)]
pub(crate) struct Mapped {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    File(memmap2::Mmap),
    Memory(Vec<u8>),
}

impl Mapped {
    /// Maps a regular file. Devices, pipes and directories are refused before they are opened for
    /// good: opening them could block or have effects.
    pub fn open(path: &Path) -> Result<Mapped, Error> {
        let read_error = |source| Error::Read { path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(read_error)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(read_error)?;
        if !file.metadata().map_err(read_error)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        // SAFETY: the mapping is read-only and private. Rust's rule that mapped bytes must not
        // change beneath a shared slice cannot be enforced on a file others may write; every
        // reader of these bytes is written for hostile input (bounds are checked at each read and
        // no decision made on a byte is relied on when it is read again), so a change leads to
        // wrong names or an error. Program files are replaced, not rewritten, by compilers,
        // linkers and package managers. A file cut short while it is read raises SIGBUS; that is
        // accepted, as every tool that maps program files does.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(read_error)?;
        Ok(Mapped { path: path.to_owned(), bytes: Bytes::File(map) })
    }

    /// Bytes that do not lie in a file, with the name to use in messages.
    pub fn from_memory(name: &str, bytes: Vec<u8>) -> Mapped {
        Mapped { path: PathBuf::from(name), bytes: Bytes::Memory(bytes) }
    }

    /// Says that a part of the bytes will not be read again soon, so that its pages need not be
    /// held. Reading it again is slow but right. Nothing happens for bytes that are not of a file.
    pub fn give_back(&self, part: &[u8]) {
        let Bytes::File(map) = &self.bytes else { return };
        let Some(offset) = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize) else { return };
        if offset.checked_add(part.len()).is_none_or(|end| end > map.len()) {
            return;
        }
        // SAFETY: the range lies in the mapping (checked above). The mapping is a private one of a
        // file and never written, so a page that is dropped is read from the file again with the
        // same bytes; shared slices of it stay as true as `open` explains.
        let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, part.len()) };
    }

    /// Where the bytes came from.
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
