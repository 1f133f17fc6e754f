//! From addresses to frames.
//!
//! A recording holds addresses as they are in the files of programs and libraries. This crate asks
//! those files, or the separate files their debug information was moved to, which functions the
//! addresses lie in, what was inlined there, and which source lines they came from, and writes the
//! answers into the recording's [`Symbols`](stackglass_profile::Symbols): see [`symbolize()`].
//!
//! It reads `.symtab` and `.dynsym`, DWARF 2 to 5 in the file itself, behind `.gnu_debuglink` or a
//! build id, split (`.dwo`, `.dwp`), shared (`dwz`) and compressed (zlib, zstd); names mangled by
//! Rust (both schemes) and C++. Code that was compiled at run time has the names its compiler left in
//! `/tmp/perf-PID.map`. It asks no server, and leaves variables and types alone.
//!
//! From the code itself it learns which calls go through vtables and function pointers
//! ([`Symbols::dispatches`](stackglass_profile::Symbols::dispatches)).
//!
//! The files are not trusted: a damaged one costs its own names, never a panic and never memory
//! out of proportion to its size.

mod cpp_path;
mod dispatch;
mod dwarf;
mod elf;
mod error;
mod frames;
mod locate;
mod mapped;
mod module_path;
mod naming;
mod options;
mod parallel;
mod perf_map;
mod rust_path;
mod sections;
mod source;
mod symbolize;
mod symtab;
mod unnamed;
mod unwind_table;
mod vdso;

pub use error::Error;
pub use naming::{Named, name_of_symbol};
pub use options::{Options, Outcome, Progress};
pub use source::library_sources;
pub use symbolize::symbolize;
