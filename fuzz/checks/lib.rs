//! What the fuzz targets check, as plain functions of bytes: nothing panics, and memory stays in
//! proportion to the input. The tests of the crates run the same functions over `corpus/`.

pub mod folded;
pub mod glass;
pub mod jlprof;
pub mod memory;
pub mod perf_script;
pub mod stream;
