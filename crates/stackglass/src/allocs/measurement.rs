//! Allocated bytes as a measurement of Criterion.

use super::Stats;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};

/// The bytes that an iteration allocates on its thread, as a measurement of [Criterion](criterion). The allocator of the benchmark
/// must be [`Alloc`](crate::Alloc).
///
/// ```
/// use criterion::Criterion;
/// use stackglass::allocs::AllocatedBytes;
///
/// let criterion = Criterion::default().with_measurement(AllocatedBytes);
/// # let _ = criterion;
/// ```
///
/// `crates/stackglass/examples/criterion.rs` is a whole benchmark.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocatedBytes;

impl Measurement for AllocatedBytes {
    type Intermediate = Stats;
    type Value = u64;

    fn start(&self) -> Stats {
        Stats::thread()
    }

    fn end(&self, stats: Stats) -> u64 {
        stats.get().bytes
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one + other
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, bytes: &u64) -> f64 {
        *bytes as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &BytesText
    }
}

struct BytesText;

/// The unit for values like this one, and its size.
fn unit(typical: f64) -> (f64, &'static str) {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    units.into_iter().find(|(size, _)| typical >= *size).unwrap_or((1.0, "B"))
}

impl ValueFormatter for BytesText {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (size, name) = unit(typical);
        values.iter_mut().for_each(|value| *value /= size);
        name
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (count, name) = match *throughput {
            Throughput::Bytes(n) | Throughput::BytesDecimal(n) => (n, "B/byte"),
            Throughput::Elements(n) => (n, "B/element"),
            Throughput::ElementsAndBytes { elements, .. } => (elements, "B/element"),
            Throughput::Bits(n) => (n, "B/bit"),
        };
        values.iter_mut().for_each(|value| *value /= (count as f64).max(1.0));
        name
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "B"
    }
}
