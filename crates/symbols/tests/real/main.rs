//! Symbols of real programs: from several compilers with known results, compared with another implementation, and from
//! damaged files.

mod allocations;
mod allocators;
mod c_programs;
mod code_lines;
mod compressed;
mod debuginfod;
mod disassembly;
mod dispatch;
mod hostile;
mod layouts;
mod oracle;
mod program;
mod rust_programs;
mod stripped;
