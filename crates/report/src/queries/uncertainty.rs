//! The uncertainty of a share that is based on samples.

/// The standard error, in hits, of a number of hits out of a total: that of a binomial distribution.
///
/// Hits are stacks that were taken. Time added to a known stack does not reduce the uncertainty.
///
/// ```
/// use stackglass_report::standard_error;
///
/// assert_eq!(standard_error(50, 100), 5.0);
/// assert_eq!((standard_error(100, 100), standard_error(0, 0)), (0.0, 0.0));
/// ```
pub fn standard_error(hits: u64, total: u64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    let share = hits.min(total) as f64 / total as f64;
    (total as f64 * share * (1.0 - share)).sqrt()
}

/// The standard error of an amount out of a total, in the same unit, that was seen in `looks` looks at many tasks at once.
///
/// It is an upper bound: that of tasks which all do the same at each moment.
pub(crate) fn looks_error(part: u64, total: u64, looks: u64) -> f64 {
    let share = if total == 0 { 0.0 } else { part.min(total) as f64 / total as f64 };
    (share * (1.0 - share) / looks.max(1) as f64).sqrt() * total as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_counts_once_however_many_tasks_it_sees() {
        assert_eq!(looks_error(50, 100, 25), 10.0);
        assert_eq!(looks_error(50_000, 100_000, 25), 10_000.0);
        assert_eq!((looks_error(7, 7, 25), looks_error(0, 0, 25), looks_error(1, 2, 0)), (0.0, 0.0, 1.0));
    }
}
