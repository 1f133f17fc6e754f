//! What is compared: time and its uncertainty.

/// A change of at least this many standard errors is beyond the noise.
pub const BEYOND: f64 = 3.0;

/// Time, or samples if times are unknown, and the hits that it is based on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Nanoseconds, or samples.
    pub amount: f64,
    /// Number of stacks taken.
    pub hits: u64,
    /// Sum of the squares of the amounts that the hits stand for.
    pub squares: f64,
}

impl Cost {
    /// Standard error of the amount, with hits as independent events. If all hits stand for the same amount, it is the
    /// amount divided by the square root of their number.
    pub fn error(&self) -> f64 {
        self.squares.sqrt()
    }
}
