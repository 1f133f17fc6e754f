//! See what your program allocates: which types and lines, what is alive, and what the peak was made of.
//!
//! Make [`Alloc`](crate::Alloc) the program's allocator. Around the system's allocator or any other one, it costs one load and a
//! branch for each call as long as nothing is recorded.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
//!
//! use stackglass::allocs;
//!
//! # fn work() -> Vec<String> { (0..100).map(|n| n.to_string()).collect() }
//! fn main() {
//!     let numbers = allocs::profile!(sample_rate = 1.0, work()); // the value of work()
//!     allocs::print(); // a tree of where bytes were allocated, all threads
//!     # assert_eq!(numbers.len(), 100);
//!     for alloc in allocs::fetch().allocs.iter().take(3) {
//!         println!("{alloc} at {:#x}", alloc.address);
//!     }
//!     # assert!(allocs::fetch().allocs.len() >= 101);
//! }
//! ```
//!
//! Names and their meaning are those of Julia's `Profile.Allocs`: each allocation is recorded with the probability
//! `sample_rate`, 0.1 by default, and reports show the recorded ones. With [`Sampling::Bytes`], reports show estimates of all.
//! Allocations of all threads are recorded, also of threads that start later. A reallocation is one allocation of the new size
//! and the end of the old block. Recorded blocks are followed until they are freed, also after [`stop`], so that
//! [`recording`] shows what is alive and what was alive at the peak. [`clear`] forgets everything.
//!
//! [`Stats`] counts the allocations of a scope, for tests and benchmarks.
//!
//! **Cost.** A recorded allocation takes some 100 ns, most of it for the stack. Other allocations of a thread that records take
//! a few. Memory grows with the number of distinct stacks and live blocks, and with the single records that [`fetch`]
//! returns ([`Options::record_bytes`] bounds them).
//!
//! **Limits.** Allocations of C code do not pass through the program's allocator: `stackglass record --allocs -- ./program` sees
//! them, and needs no change to the program. Under that command this module records nothing.

pub(crate) mod clear_malloc_data;
#[cfg(feature = "criterion")]
mod measurement;
mod options;
mod recording;
pub(crate) mod region;
mod report;
mod results;
mod running;
mod stats;

pub use crate::__allocs_profile as profile;
#[cfg(feature = "criterion")]
pub use measurement::AllocatedBytes;
pub use options::{DEFAULT_RECORD_BYTES, DEFAULT_SAMPLE_RATE, Options, Sampling, StartError};
pub use recording::recording;
#[cfg(feature = "flame")]
pub use report::flamegraph;
#[cfg(feature = "files")]
pub use report::save;
pub use report::{NO_ALLOCATIONS, print, write};
pub use results::{Alloc, AllocResults, fetch};
pub use running::{clear, is_running, start, stop};
pub use stackglass_profile::UNKNOWN_TYPE;
pub use stats::{Stats, StatsCounts, measure};

/// Records the allocations of an expression, by all threads, and returns its value.
///
/// `sample_rate = …` or `sampling = …` may come first. The recording ends also by a panic, `return` or `?`. Records add up until
/// [`clear`]. If recording cannot start, the expression still runs, and one line on standard error says why.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// use stackglass::allocs::{self, Sampling};
///
/// # fn main() {
/// let text = allocs::profile!("a".repeat(1000));
/// let all = allocs::profile!(sample_rate = 1.0, text.clone());
/// let by_bytes = allocs::profile!(sampling = Sampling::Bytes(512 << 10), text.clone());
/// # assert_eq!(all, by_bytes);
/// # }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __allocs_profile {
    (sample_rate = $rate:expr, $($body:tt)*) => {
        $crate::__allocs_profile!(@ $crate::allocs::Options::from($rate); $($body)*)
    };
    (sampling = $sampling:expr, $($body:tt)*) => {
        $crate::__allocs_profile!(@ $crate::allocs::Options::from($sampling); $($body)*)
    };
    (@ $options:expr; $($body:tt)*) => {{
        let region = $crate::__private::AllocsRegion::enter($options);
        let value = { $($body)* };
        drop(region);
        value
    }};
    ($($body:tt)*) => {
        $crate::__allocs_profile!(@ $crate::allocs::Options::default(); $($body)*)
    };
}
