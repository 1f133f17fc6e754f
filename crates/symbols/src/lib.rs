//! From addresses to frames.
//!
//! A recording holds addresses in the files of programs and libraries. The crate `debug_info` reads those files, or the
//! separate files with their debug information. This crate finds the functions, inlined calls and source lines at the
//! addresses, and writes them to the recording's [`Symbols`](stackglass_profile::Symbols): see [`symbolize()`].
//!
//! Names are in `.symtab`, `.dynsym`, and DWARF 2 to 5: in the file itself, or in one with its debug information. Code compiled at
//! run time has the names in its compiler's `/tmp/perf-PID.map`. No server is contacted, unless [`Options::debuginfod`] names some.
//! [`types`] are those of blocks, by the stacks that allocated them.
//!
//! The instructions of the code show which calls go through vtables and function pointers
//! ([`Symbols::dispatches`](stackglass_profile::Symbols::dispatches)).
//!
//! Files are not trusted. A damaged file loses its names. It never causes a panic, or memory out of proportion to its size.

mod allocators;
mod block_flow;
mod code_lines;
mod coroutine_names;
mod covering;
pub mod disassembly;
mod dispatch;
mod frames;
mod language;
mod module_code;
mod outcome;
mod perf_map;
mod receivers;
mod starts;
mod symbolize;
mod symtab;
mod task_polls;
pub mod types;
mod unnamed;
mod unwind_table;
mod wrappers;

pub use allocators::{
    FunctionEntry, LinkedAllocator, MovableFunction, MovableStart, MovedDistance, cheap_breakpoint,
    function_entries, linked_allocator, movable_functions, rust_allocator_function,
};
pub use code_lines::code_lines;
pub use coroutine_names::is_coroutine_body;
pub use disassembly::{Disassembly, disassembly};
pub use outcome::{Outcome, Progress};
pub use stackglass_debug_info::naming::{Named, name_of_symbol};
pub use stackglass_debug_info::source::library_sources;
pub use stackglass_debug_info::{Debuginfod, Error, Options, register_open_file};
pub use starts::names_of_starts;
pub use symbolize::{symbolize, with_contents};
pub use task_polls::{FutureName, PolledFuture, polled_futures};
