//! How far a share may be off because only some moments were looked at.

/// Standard error of a number of hits out of a total, in hits: that of a binomial count.
///
/// Hits are stacks that were really taken; time that was added later without looking again does
/// not make a share any surer.
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
