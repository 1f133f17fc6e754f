//! From a frozen process to the typed graph of its heap.
//!
//! A [`CoreImage`](stackglass_process_view::core_image::CoreImage) is the memory and the registers of a process that does not run. Its live
//! blocks ([`blocks`]) come from the table of the allocation recorder, or from the structures of the C library's allocator. Layouts of
//! types ([`stackglass_layouts`]) tell where a block holds pointers ([`references`]).
//!
//! Everything that comes from the process is hostile input: addresses and counts are checked before they are used.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod graph;
pub mod other_memory;
pub mod references;
mod root;
pub mod roots;
mod site;
pub mod typing;
mod window;
