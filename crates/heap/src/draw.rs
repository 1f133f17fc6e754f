//! Which allocations are recorded: every one, each with a probability, or one sample in a number of bytes.
//!
//! A thread counts down to its next recorded allocation. With a probability p, the distance is geometric, which is the same as
//! one independent draw for each allocation. With a mean number of bytes, it is exponential; then a recorded allocation stands for
//! 1 / (1 - exp(-size / mean)) allocations of its size, which makes sums unbiased (Horvitz and Thompson 1952).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use stackglass_sampling::Random;
use stackglass_wire::heap::{COUNT_SCALE, HeapSampling};

/// Which allocations are recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sampling {
    /// Every allocation.
    Every,
    /// Each with this probability.
    Rate(f64),
    /// One sample in this many bytes on average.
    Bytes(u64),
}

static KIND: AtomicU32 = AtomicU32::new(0);
/// 1 / ln(1 - p), or the mean number of bytes, as bits of a f64.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// Longest countdown.
const FAR: f64 = 1e15;

impl Sampling {
    /// From the numbers of a session page; `None` for off.
    pub fn from_numbers(kind: u32, parameter: u64) -> Option<Sampling> {
        match HeapSampling::from_number(kind) {
            HeapSampling::Off => None,
            HeapSampling::Every => Some(Sampling::Every),
            HeapSampling::Rate => Some(Sampling::Rate(f64::from_bits(parameter))),
            HeapSampling::Bytes => Some(Sampling::Bytes(parameter)),
        }
    }

    /// Whether no allocation is left out. Rates from 1 on mean every allocation.
    pub fn is_every(self) -> bool {
        match self {
            Sampling::Every => true,
            Sampling::Rate(p) => p.is_nan() || p >= 1.0,
            Sampling::Bytes(mean) => mean <= 1,
        }
    }

    /// The numbers for a page: kind and parameter.
    pub fn numbers(self) -> (HeapSampling, u64) {
        match self {
            Sampling::Every => (HeapSampling::Every, 0),
            Sampling::Rate(p) => (HeapSampling::Rate, p.to_bits()),
            Sampling::Bytes(mean) => (HeapSampling::Bytes, mean),
        }
    }
}

/// Sets which allocations are recorded. Rates up to 0 mean none.
pub fn set(sampling: Sampling) {
    let (kind, scale) = match sampling {
        _ if sampling.is_every() => (HeapSampling::Every, 0.0),
        Sampling::Rate(p) => {
            let scale = if p > 0.0 { 1.0 / ln_1m(p) } else { -FAR };
            (HeapSampling::Rate, scale)
        }
        Sampling::Bytes(mean) => (HeapSampling::Bytes, mean as f64),
        Sampling::Every => (HeapSampling::Every, 0.0),
    };
    SCALE.store(scale.to_bits(), Relaxed);
    KIND.store(kind as u32, Relaxed);
}

/// Whether some allocations are left out.
pub fn leaves_some_out() -> bool {
    KIND.load(Relaxed) != HeapSampling::Every as u32
}

/// ln(1 - p) for 0 < p < 1.
fn ln_1m(p: f64) -> f64 {
    // For small p, 1 - p has lost most digits of p.
    if p < 1e-4 { -p - p * p / 2.0 - p * p * p / 3.0 } else { ln(1.0 - p) }
}

/// A thread's countdown.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Countdown {
    left: i64,
    random: Random,
}

/// What a recorded allocation counts as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Allocations, times [`COUNT_SCALE`] with one sample in a number of bytes.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Weight {
    /// The weight of a recorded allocation of `size` bytes. Its free has the same.
    #[inline(always)]
    pub fn from_size(size: u64) -> Weight {
        if KIND.load(Relaxed) != HeapSampling::Bytes as u32 {
            return Weight { count: 1, bytes: size };
        }
        Weight::of_bytes(size)
    }

    #[cold]
    fn of_bytes(size: u64) -> Weight {
        let mean = f64::from_bits(SCALE.load(Relaxed));
        let weight = 1.0 / probability(size.max(1) as f64 / mean);
        Weight { count: (weight * COUNT_SCALE as f64) as u64, bytes: (weight * size as f64) as u64 }
    }
}

impl Countdown {
    /// Starts with a seed. Those of threads that begin soon after each other may be nearly the same.
    pub fn begin(&mut self, seed: u64) {
        self.random = Random::new(seed);
        self.left = self.draw();
    }

    /// Whether the next allocation, of `size` bytes, is recorded.
    #[inline(always)]
    pub fn hits(&mut self, size: u64) -> bool {
        if KIND.load(Relaxed) == HeapSampling::Every as u32 {
            return true;
        }
        if self.leaves_out(size) {
            return false;
        }
        self.left = self.draw();
        true
    }

    /// Whether the next allocation, of `size` bytes, is left out. If not, it is not counted yet: [`Countdown::hits`] counts it. Not
    /// where every allocation is recorded.
    #[inline(always)]
    pub fn leaves_out(&mut self, size: u64) -> bool {
        let step = if KIND.load(Relaxed) == HeapSampling::Bytes as u32 { size.max(1) as i64 } else { 1 };
        let is_left_out = self.left >= step;
        if is_left_out {
            self.left -= step;
        }
        is_left_out
    }

    /// A number that changes with each allocation that is not recorded.
    pub fn position(&self) -> i64 {
        self.left
    }

    #[cold]
    fn draw(&mut self) -> i64 {
        // 0 < u <= 1.
        let u = ((self.random.number() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        let scale = f64::from_bits(SCALE.load(Relaxed));
        let far = match HeapSampling::from_number(KIND.load(Relaxed)) {
            HeapSampling::Rate => ln(u) * scale,
            HeapSampling::Bytes => -ln(u) * scale,
            _ => 0.0,
        };
        far.min(FAR) as i64
    }
}

/// 1 - exp(-x) for x > 0.
fn probability(x: f64) -> f64 {
    if x > 40.0 {
        return 1.0;
    }
    // exp(-x) = exp(-x / 1024) ^ 1024; the series is exact for small arguments, and so is the repeated doubling
    // p(2x) = p (2 - p).
    let small = x / 1024.0;
    let mut p = small * (1.0 - small / 2.0 * (1.0 - small / 3.0 * (1.0 - small / 4.0)));
    for _ in 0..10 {
        p *= 2.0 - p;
    }
    p
}

/// The natural logarithm of a positive normal number. The one of the C library would be a further library to load.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)).
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for n in (0..10).rev() {
        sum = sum * square + 1.0 / (2 * n + 1) as f64;
    }
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_standard_library() {
        for x in [1e-300, 1e-9, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 1e9] {
            assert!((ln(x) - f64::ln(x)).abs() <= 1e-13 * f64::ln(x).abs().max(1.0), "{x}");
        }
        for x in [1e-9, 1e-3, 0.1, 1.0, 7.0, 39.0, 100.0] {
            let expected = -f64::exp_m1(-x);
            assert!((probability(x) / expected - 1.0).abs() < 1e-9, "{x}: {} {expected}", probability(x));
        }
        for p in [1e-9, 1e-5, 0.01, 0.5, 0.99] {
            assert!((ln_1m(p) / f64::ln_1p(-p) - 1.0).abs() < 1e-11, "{p}");
        }
    }

    /// The settings are shared by all threads, so everything about them is one test.
    #[test]
    fn rates_and_weights_are_unbiased() {
        let mut countdown = Countdown { left: 0, random: Random::default() };
        for p in [0.9, 0.1, 0.01] {
            set(Sampling::Rate(p));
            countdown.begin(0x1234_5678_9abc_def1);
            let (n, mut hits, mut runs, mut before) = (1_000_000, 0u32, 0u32, false);
            for _ in 0..n {
                let hit = countdown.hits(32);
                hits += u32::from(hit);
                runs += u32::from(hit && before);
                before = hit;
            }
            let error = (n as f64 * p * (1.0 - p)).sqrt();
            assert!((f64::from(hits) - n as f64 * p).abs() < 5.0 * error, "{p}: {hits}");
            // Neighbours are independent: p² of all pairs.
            let expected = n as f64 * p * p;
            assert!((f64::from(runs) - expected).abs() < 6.0 * expected.sqrt() + 5.0, "{p}: {runs} pairs");
        }
        set(Sampling::Rate(0.0));
        countdown.begin(3);
        assert!((0..1_000_000).all(|_| !countdown.hits(8)));
        set(Sampling::Rate(1.0));
        countdown.begin(3);
        assert!((0..1000).all(|_| countdown.hits(8)));

        // Short threads that begin one after the other.
        set(Sampling::Rate(0.1));
        let (threads, mut first, mut both) = (100_000u64, 0u32, 0u32);
        for thread in 0..threads {
            countdown.begin(80_000_000_000_000 + thread * 30_000);
            let hits = [countdown.hits(32), countdown.hits(32)];
            first += u32::from(hits[0]);
            both += u32::from(hits == [true; 2]);
        }
        assert!((f64::from(first) - 1e4).abs() < 500.0, "{first}");
        assert!((f64::from(both) - 1e3).abs() < 160.0, "{both}");

        set(Sampling::Bytes(4096));
        countdown.begin(99);
        let (mut bytes, mut estimate, mut count, mut counted) = (0u64, 0u64, 0u64, 0u64);
        for n in 0..2_000_000u64 {
            let size = [16, 100, 3000, 20_000][(n % 4) as usize];
            bytes += size;
            count += 1;
            if countdown.hits(size) {
                let weight = Weight::from_size(size);
                estimate += weight.bytes;
                counted += weight.count;
            }
        }
        assert!((estimate as f64 / bytes as f64 - 1.0).abs() < 0.01, "{estimate} of {bytes} bytes");
        let counted = counted as f64 / COUNT_SCALE as f64;
        assert!((counted / count as f64 - 1.0).abs() < 0.06, "{counted} of {count} allocations");
        set(Sampling::Every);
    }
}
