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
