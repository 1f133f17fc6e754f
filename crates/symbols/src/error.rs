//! What can go wrong with one module. None of it ends symbolization: the module's frames keep the
//! names that could be had, and the error is handed back beside them.

use std::io;
use std::path::PathBuf;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened or mapped.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A device, pipe or directory where a program file was expected.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Not a 64-bit little-endian ELF file, or its tables lie outside of it.
    #[error("{} is not a usable 64-bit ELF file: {what}", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file on disk was replaced since it was profiled.
    #[error("{} has changed since it was profiled (build id {found}, recorded {recorded})", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Build id of the file on disk, in hexadecimal; empty when it has none.
        found: String,
        /// The recorded one.
        recorded: String,
    },
    /// A compressed section does not decompress to the size it declares.
    #[error("section {section} of {} cannot be decompressed: {what}", path.display())]
    Compression {
        /// The file.
        path: PathBuf,
        /// Name of the section.
        section: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The debug information breaks the rules of DWARF.
    #[error("debug information of {} is damaged: {source}", path.display())]
    Dwarf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: gimli::Error,
    },
    /// A unit's debug information was split off into a file that is not there.
    #[error("{} refers to {}, which is missing: functions inlined there stay unknown", path.display(), split.display())]
    SplitMissing {
        /// The program or library.
        path: PathBuf,
        /// The `.dwo` file it names.
        split: PathBuf,
    },
}
