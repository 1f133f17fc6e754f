//! Recordings on disk.
//!
//! * [`glass`]: `.glass`, the project's format. Files grow by complete chunks while the program runs, and are always
//!   readable up to the last complete chunk. The layout is in `FORMAT.md`.
//! * [`jlprof`]: samples and flame graphs in the format of Julia's FlameGraphs.jl.
//! * [`heapsnapshot`]: heap snapshots, in the format of V8.
//! * [`folded`]: folded stacks, `root;…;leaf N`, as used by many tools.
//! * [`mem`]: sources with the bytes that each line allocated.
//! * [`perf_script`]: the text of `perf script`.
//! * [`recording_of`]: conversion of a word buffer to a recording.
//!
//! Writing while a program runs:
//!
//! ```
//! use stackglass_files::{Completeness, GlassWriter};
//! use stackglass_profile::Recording;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("demo.glass");
//! let mut recording = Recording::default();
//! let mut writer = GlassWriter::create(&path, &recording.info)?; // mode 0600, exists from now on
//! // … repeatedly, while the recording grows:
//! writer.append(&recording)?; // writes only what is new, in one write(2)
//! // … after the end of the program and symbolization:
//! writer.finish(&recording)?;
//!
//! let (read, completeness) = stackglass_files::read(&path)?;
//! assert!(completeness.is_complete());
//! assert_eq!(read.samples, recording.samples);
//! # Ok(())
//! # }
//! ```
//!
//! Files are untrusted. Readers check counts against the remaining size before they allocate memory, do not recurse by the
//! depth of the input, and do not panic. Errors say what is wrong at which offset.

mod atomic_write;
mod fault;
pub mod folded;
mod free_name;
pub mod glass;
pub mod heapsnapshot;
mod hidden_file;
mod import;
pub mod jlprof;
pub mod mem;
pub mod perf_script;
mod unnamed_file;

pub use atomic_write::{write_atomically, write_atomically_with_mode};
pub use free_name::claim_free_name;
pub use glass::{
    Completeness, GlassReader, GlassWriter, ReadError, Totals, WriteError, latest, read, read_from,
    read_merged, read_merged_from, read_merged_part, read_rows, read_rows_from, read_tables, write,
};
pub use import::recording_of;
