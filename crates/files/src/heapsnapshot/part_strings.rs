//! The part file of strings: for each its length (u64), then its bytes.

use super::error::HeapSnapshotError;
use super::part_files::PartFile;
use crate::fault::Fault;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::PathBuf;

const BUFFER: usize = 1 << 18;

/// A file of strings, of which the lengths are checked.
#[derive(Debug)]
pub(super) struct Strings {
    pub path: PathBuf,
    pub count: u64,
    file: File,
    size: u64,
}

impl Strings {
    pub(super) fn new((path, file): PartFile) -> Result<Self, HeapSnapshotError> {
        let size = file.metadata().map_err(HeapSnapshotError::system("open", &path))?.len();
        let mut strings = Self { path, count: 0, file, size };
        strings.count = strings.count().map_err(|fault| fault.in_file(&strings.path))?;
        if strings.count > u64::from(u32::MAX) {
            return Err(HeapSnapshotError::invalid(&strings.path, "more than 4 294 967 295 strings"));
        }
        Ok(strings)
    }

    fn count(&self) -> Result<u64, Fault> {
        let mut input = self.rewound()?;
        let (mut at, mut count) = (0, 0);
        while at < self.size {
            let length = self.length(&mut input, at)?;
            // Seeking beyond i64::MAX is impossible in a file of this size.
            input.seek_relative(length as i64)?;
            at += 8 + length;
            count += 1;
        }
        Ok(count)
    }

    fn rewound(&self) -> Result<BufReader<&File>, Fault> {
        let mut file = &self.file;
        file.rewind()?;
        Ok(BufReader::with_capacity(BUFFER, file))
    }

    /// The length of the string at `at`, which fits into the rest of the file.
    fn length(&self, input: &mut impl Read, at: u64) -> Result<u64, Fault> {
        let mut length = [0; 8];
        let left = self.size - at;
        if left >= 8 {
            input.read_exact(&mut length)?;
        }
        let length = u64::from_le_bytes(length);
        if left < 8 || length > left - 8 {
            return Err(Fault::at(at, "truncated strings file: a string goes beyond its end"));
        }
        Ok(length)
    }

    /// Calls a function for each string.
    pub(super) fn each<E: From<Fault>>(
        &self,
        mut string: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut input = self.rewound()?;
        let (mut at, mut text) = (0, Vec::new());
        while at < self.size {
            let length = self.length(&mut input, at)?;
            text.clear();
            let read = input.by_ref().take(length).read_to_end(&mut text).map_err(Fault::from)?;
            if read as u64 != length {
                return Err(Fault::at(at, "truncated strings file: a string goes beyond its end").into());
            }
            string(&text)?;
            at += 8 + length;
        }
        Ok(())
    }
}
