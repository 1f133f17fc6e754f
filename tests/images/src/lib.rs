//! Core images of real programs in files, and how they are read: no process, no compiler and no clock takes part.
//!
//! * [`StoredImage`] is what such a file has: mappings, threads, pages of memory, the program's file, and what the program said.
//! * [`Opened`] is a core image made of it. The program's file lies in a temporary folder meanwhile.
//! * [`Pages`] is its memory, in which words can be changed and whose reads are counted.
//! * [`Noted`] notes which pages a reader reads, when an image is recorded.
//! * [`without_code`] makes the file of a program smaller.
#![forbid(unsafe_code)]

mod noted;
mod opened;
mod pages;
mod program_file;
mod stored;

pub use noted::Noted;
pub use opened::Opened;
pub use pages::Pages;
pub use program_file::without_code;
pub use stored::{PAGE, StoredImage};
