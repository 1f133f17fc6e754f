//! Positions of boxes narrower than a pixel, which are drawn together.

use std::ops::Range;

/// The columns with such boxes, by row.
pub(super) struct Merged {
    /// Number of column boundaries in a row.
    places: usize,
    /// By boundary: number of boxes that begin there minus number of boxes that end there.
    changes: Vec<i64>,
}

impl Merged {
    pub fn new(width: usize, rows: usize) -> Merged {
        let places = width + 1;
        Merged { places, changes: vec![0; places * rows] }
    }

    /// Adds a box.
    pub fn add(&mut self, row: usize, from: f64, to: f64) {
        let width = self.places - 1;
        let first = (from.max(0.0) as usize).min(width.saturating_sub(1));
        let last = (to.ceil() as usize).min(width).max(first + 1);
        let changes = &mut self.changes[row * self.places..][..self.places];
        changes[first] += 1;
        changes[last] -= 1;
    }

    /// The rows and column ranges to draw.
    pub fn runs(&self) -> Vec<(usize, Range<usize>)> {
        let mut runs = Vec::new();
        for (row, changes) in self.changes.chunks_exact(self.places).enumerate() {
            let (mut open, mut start) = (0, 0);
            for (column, change) in changes.iter().enumerate() {
                let before = open;
                open += change;
                match (before, open) {
                    (0, 1..) => start = column,
                    (1.., 0) => runs.push((row, start..column)),
                    _ => {}
                }
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        let mut merged = Merged::new(10, 2);
        for at in 0..30 {
            merged.add(0, 2.0 + f64::from(at) * 0.1, 2.1 + f64::from(at) * 0.1);
        }
        merged.add(1, 9.9, 10.0);
        merged.add(1, 10.0, 10.0);
        merged.add(1, 0.1, 0.2);
        assert_eq!(merged.runs(), [(0, 2..5), (1, 0..1), (1, 9..10)]);
    }
}
