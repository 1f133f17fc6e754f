//! Files with code and debug information: where they are, and what is in them.
//!
//! - [`locate`]: the files of a module: the program, and the separate files with its debug information, by path, `.gnu_debuglink` or build
//!   id, or from a server ([`debuginfod`]). `mapped`: a file in memory.
//! - [`elf`]: sections and tables of symbols. [`sections`]: sections with debug information, compressed or not.
//! - [`dwarf`]: units, entries, lines, names and split debug information of DWARF 2 to 5. [`loaded`]: all that is read before units.
//! - [`naming`]: names of symbols, demangled and shortened. [`source`]: where sources are.
//!
//! Debug information is in the file itself, behind `.gnu_debuglink` or a build id, split (`.dwo`, `.dwp`), shared (`dwz`) and compressed
//! (zlib, zstd). Stripped files may have symbols in `.gnu_debugdata`. Names are those of Rust (both schemes) and C++.
//!
//! Files are not trusted. A damaged file is an [`Error`]. It never causes a panic, or memory out of proportion to its size.
#![deny(missing_docs)]

mod cpp_path;
pub mod debuginfod;
mod decompress;
pub mod dwarf;
pub mod elf;
mod error;
mod front;
pub mod functions;
pub mod loaded;
pub mod locate;
mod lossy_path;
pub mod mapped;
mod mini_debug_info;
pub mod module_path;
pub mod naming;
mod open_files;
mod options;
pub mod parallel;
pub mod rust_path;
pub mod sections;
pub mod source;
pub mod vdso;

pub use debuginfod::Debuginfod;
pub use error::Error;
pub use open_files::register_open_file;
pub use options::Options;
