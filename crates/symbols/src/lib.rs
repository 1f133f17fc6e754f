//! From addresses to frames.
//!
//! A recording holds addresses in the files of programs and libraries. This crate reads those files, or the separate files
//! with their debug information. It finds the functions, inlined calls and source lines at the addresses, and writes them
//! to the recording's [`Symbols`](stackglass_profile::Symbols): see [`symbolize()`].
//!
//! It reads `.symtab`, `.dynsym`, and DWARF 2 to 5: in the file itself, behind `.gnu_debuglink` or a build id, split
//! (`.dwo`, `.dwp`), shared (`dwz`) and compressed (zlib, zstd). Stripped files may have symbols in `.gnu_debugdata`. It demangles Rust (both schemes) and C++. Code compiled at
//! run time has the names in its compiler's `/tmp/perf-PID.map`. No server is contacted, unless
//! [`Options::debuginfod`] names some. Types and variables are read
//! on demand: see [`layouts`].
//!
//! The instructions of the code show which calls go through vtables and function pointers
//! ([`Symbols::dispatches`](stackglass_profile::Symbols::dispatches)).
//!
//! Files are not trusted. A damaged file loses its names. It never causes a panic, or memory out of proportion to its size.

mod allocators;
mod code_lines;
mod coroutine_names;
mod covering;
mod cpp_path;
mod debuginfod;
mod dispatch;
mod dwarf;
mod elf;
mod error;
mod frames;
mod front;
mod held;
mod kept;
mod language;
pub mod layouts;
mod locate;
mod lossy_path;
mod mapped;
mod mini_debug_info;
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
mod types;
mod unnamed;
mod unwind_table;
mod vdso;

pub use allocators::{
    LinkedAllocator, MovableFunction, MovableStart, MovedDistance, linked_allocator, movable_functions,
};
pub use code_lines::code_lines;
pub use coroutine_names::is_coroutine_body;
pub use debuginfod::Debuginfod;
pub use error::Error;
pub use held::hold;
pub use naming::{Named, name_of_symbol};
pub use options::{Options, Outcome, Progress};
pub use source::library_sources;
pub use symbolize::symbolize;
