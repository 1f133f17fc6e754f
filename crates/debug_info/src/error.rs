//! Errors in one module. None ends symbolization: the module's frames have the names that could be found, and the errors
//! are returned with them.

use std::io;
use std::path::PathBuf;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened or mapped.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A device, pipe or directory where a program file was expected.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Not a 64-bit little-endian ELF file, or one whose tables lie outside of it.
    #[error("{} is not a usable 64-bit ELF file: {what}", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file was replaced after it was profiled.
    #[error("{} has changed since it was profiled (build id {found}, recorded {recorded})", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Build id of the file on disk, in hexadecimal; empty if it has none.
        found: String,
        /// The recorded build id.
        recorded: String,
    },
    /// A compressed section does not have the size that it declares.
    #[error("section {section} of {} cannot be decompressed: {what}", path.display())]
    Compression {
        /// The file.
        path: PathBuf,
        /// Name of the section.
        section: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The debug information is not valid DWARF.
    #[error("debug information of {} is damaged: {source}", path.display())]
    Dwarf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: gimli::Error,
    },
    /// The file with a unit's split debug information is missing.
    #[error("{} refers to {}, which is missing: functions inlined there stay unknown", path.display(), split.display())]
    SplitMissing {
        /// The program or library.
        path: PathBuf,
        /// The `.dwo` file.
        split: PathBuf,
    },
}
