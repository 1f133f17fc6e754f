//! Symbols of real programs: from several compilers with known results, and compared with another implementation.

mod allocators;
mod c_programs;
mod code_lines;
mod compressed;
mod debuginfod;
mod disassembly;
mod dispatch;
mod instructions;
mod oracle;
mod program;
mod rust_programs;
mod stripped;
