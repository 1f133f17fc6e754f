//! Medians and the intervals around them.

/// A figure and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The figure itself.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
}

/// Resamplings for a bootstrap interval.
const RESAMPLINGS: usize = 4000;

impl Interval {
    /// A figure without spread.
    pub fn exact(x: f64) -> Interval {
        Interval { low: x, middle: x, high: x }
    }

    /// Smallest, median and largest of some runs.
    pub fn range(values: &[f64]) -> Interval {
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
        Interval { low: fold(f64::min), middle: median(values), high: fold(f64::max) }
    }

    /// Bootstrap interval (95 %) of `figure`: rounds are resampled with replacement.
    pub fn bootstrap<T: Clone>(rounds: &[T], figure: impl Fn(&[T]) -> f64) -> Interval {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut drawn: Vec<f64> = (0..RESAMPLINGS)
            .map(|_| {
                let again: Vec<T> = rounds.iter().map(|_| rounds[draw(rounds.len())].clone()).collect();
                figure(&again)
            })
            .filter(|x| x.is_finite())
            .collect();
        drawn.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = (drawn.len().saturating_sub(1)) as f64 * q;
            drawn.get(at.round() as usize).copied().unwrap_or(f64::NAN)
        };
        Interval { low: quantile(0.025), middle: figure(rounds), high: quantile(0.975) }
    }

    /// Wilson's interval (95 %) for `hits` of `all`.
    pub fn share(hits: u64, all: u64) -> Interval {
        if all == 0 {
            return Interval { low: 0.0, middle: f64::NAN, high: 1.0 };
        }
        let (n, p, z) = (all as f64, hits as f64 / all as f64, 1.96_f64);
        let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / (1.0 + z * z / n);
        Interval { low: centre - half, middle: p, high: (centre + half).min(1.0) }
    }
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_figure() {
        let rounds = [1.0, 1.1, 0.9, 1.05, 0.95];
        let interval = Interval::bootstrap(&rounds, median);
        assert!(interval.low <= interval.middle && interval.middle <= interval.high);
        assert!(interval.low >= 0.9 && interval.high <= 1.1);
        assert_eq!(Interval::range(&rounds).middle, 1.0);
        let share = Interval::share(999, 1000);
        assert!(share.low > 0.99 && share.low < 0.999 && share.high <= 1.0);
    }
}
