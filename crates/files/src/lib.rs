//! Recordings on disk.
//!
//! * [`glass`]: `.glass`, our own recording: grows in whole chunks while the program runs, and is
//!   readable up to the last whole chunk whatever happens. Layout in `FORMAT.md`.
//! * [`jlprof`]: samples and flame graphs as Julia's FlameGraphs.jl saves and loads them.
//! * [`folded`]: folded stacks, `root;…;leaf N`, which many tools read and write.
//! * [`perf_script`]: the text of `perf script`.
//! * [`recording_of`]: a recording made of what was read from such files.
//!
//! Writing, while a program runs and at its end:
//!
//! ```
//! use stackglass_files::{Completeness, GlassWriter};
//! use stackglass_profile::Recording;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("demo.glass");
//! let mut recording = Recording::default();
//! let mut writer = GlassWriter::create(&path, &recording.about)?; // mode 0600, exists from now on
//! // … the recording grows; again and again:
//! writer.append(&recording)?; // writes only what is new, one write(2)
//! // … the program ended, names were found:
//! writer.finish(&recording)?;
//!
//! let (read, completeness) = stackglass_files::read(&path)?;
//! assert!(completeness.is_complete());
//! assert_eq!(read.samples, recording.samples);
//! # Ok(())
//! # }
//! ```
//!
//! Every file read here is hostile: counts are checked against what is left before memory is
//! asked for, nothing recurses by the depth of the input, nothing panics, and an error says what
//! is wrong at which offset.

pub mod folded;
pub mod glass;
mod import;
pub mod jlprof;
pub mod perf_script;
mod whole;

pub use glass::{
    Completeness, GlassReader, GlassWriter, ReadError, Totals, WriteError, latest, read, read_from,
    read_merged, read_merged_from, read_tables, write,
};
pub use import::recording_of;
pub use whole::{write_whole, write_whole_at_most};
