//! Names of real programs: built by several compilers with known answers, compared with another
//! implementation, and damaged.

mod c_programs;
mod disassembly;
mod dispatch;
mod hostile;
mod oracle;
mod program;
mod rust_programs;
mod stripped;
