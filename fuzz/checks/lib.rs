//! The checks of the fuzz targets as functions of bytes: no panics, and memory in proportion to the input. The tests of the
//! crates run the same functions on `corpus/`.

pub mod folded;
pub mod glass;
pub mod glibc_heap;
pub mod heap_parts;
pub mod heapsnapshot;
pub mod jlprof;
pub mod layouts;
#[path = "../../crates/heapgraph/tests/support/made_up.rs"]
pub mod made_up;
pub mod memory;
pub mod perf_script;
pub mod stream;
pub mod tasks;
pub mod unwind_tables;
pub mod waiting;
