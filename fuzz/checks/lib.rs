//! The checks of the fuzz targets as functions of bytes: no panics, and memory in proportion to the input. The tests of the
//! crates run the same functions on `corpus/`.

pub mod folded;
pub mod glass;
pub mod jlprof;
pub mod memory;
pub mod perf_script;
pub mod stream;
