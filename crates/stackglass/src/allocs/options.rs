//! What is recorded of allocations, and why it may not be.

use stackglass_heap::Sampling as HeapSampling;
use stackglass_heap::own_recording::{Keeping, NotRecorded};

/// Default probability that an allocation is recorded.
pub const DEFAULT_SAMPLE_RATE: f64 = 0.1;

/// Default of [`Options::record_bytes`]: room for some 4 million records.
pub const DEFAULT_RECORD_BYTES: u64 = 32 << 20;

/// Which allocations are recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sampling {
    /// Each with this probability: from 0 (none) to 1 (every one). Values outside are clamped. Counts and bytes are those of
    /// the recorded allocations, not estimates.
    Rate(f64),
    /// One sample in this many bytes on average. Counts and bytes are unbiased estimates for all allocations.
    Bytes(u64),
}

/// The options of a recording of allocations.
///
/// ```
/// use stackglass::allocs::{DEFAULT_SAMPLE_RATE, Options, Sampling};
///
/// assert_eq!(Options::default().sampling, Sampling::Rate(DEFAULT_SAMPLE_RATE));
/// let large = Options { sampling: Sampling::Bytes(512 << 10), ..Options::default() };
/// assert_eq!(Options::from(Sampling::Bytes(512 << 10)), large);
/// assert_eq!(Options::from(1.0).sampling, Sampling::Rate(1.0));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Which allocations are recorded.
    pub sampling: Sampling,
    /// Most bytes of memory for the single records that [`fetch`](super::fetch) returns: 5 to 9 bytes for each. Beyond that they
    /// are lost, which [`AllocResults::lost`](super::AllocResults) counts; reports and recordings stay complete. 0 keeps none.
    pub record_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { sampling: Sampling::Rate(DEFAULT_SAMPLE_RATE), record_bytes: DEFAULT_RECORD_BYTES }
    }
}

/// A sample rate, with the other options at their defaults.
impl From<f64> for Options {
    fn from(sample_rate: f64) -> Options {
        Sampling::Rate(sample_rate).into()
    }
}

impl From<Sampling> for Options {
    fn from(sampling: Sampling) -> Options {
        Options { sampling, ..Options::default() }
    }
}

impl Options {
    pub(super) fn keeping(&self) -> Keeping {
        let sampling = match self.sampling {
            Sampling::Rate(rate) if rate >= 1.0 => HeapSampling::Every,
            // Not a number is no probability.
            Sampling::Rate(rate) => HeapSampling::Rate(if rate > 0.0 { rate } else { 0.0 }),
            Sampling::Bytes(mean) => HeapSampling::Bytes(mean.max(1)),
        };
        Keeping { sampling, record_bytes: self.record_bytes }
    }
}

/// An error of starting to record allocations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program allocates with another allocator.
    #[error(
        "the program's allocator is not stackglass::Alloc; add: #[global_allocator] static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();"
    )]
    OtherAllocator,
    /// The system refused something that the recorder needs.
    #[error("allocations cannot be recorded in this process: the system refused {step} (error {errno})")]
    Refused {
        /// The step.
        step: &'static str,
        /// The kernel's error number.
        errno: i32,
    },
}

impl StartError {
    /// `None` if the preload library records, which is no error.
    pub(super) fn from_not_recorded(why: NotRecorded) -> Option<StartError> {
        match why {
            NotRecorded::Delegated => None,
            NotRecorded::OtherAllocator => Some(StartError::OtherAllocator),
            NotRecorded::Refused(refused) => {
                Some(StartError::Refused { step: refused.step, errno: refused.errno })
            }
        }
    }
}
