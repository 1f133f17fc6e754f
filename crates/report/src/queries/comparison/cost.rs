//! What is compared: time, and how sure it is.

/// Standard errors from which on a change is beyond the noise.
pub const BEYOND: f64 = 3.0;

/// Time, or samples where no time is known, and the hits it rests on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Nanoseconds, or samples.
    pub amount: f64,
    /// Stacks really taken.
    pub hits: u64,
    /// Sum of the squares of what each of them stands for.
    pub squares: f64,
}

impl Cost {
    /// Standard error of the amount: hits come one by one, each with what it stands for. Where all stand for the
    /// same it is the amount by the root of their number; a few that stand for much weigh more.
    pub fn error(&self) -> f64 {
        self.squares.sqrt()
    }
}
