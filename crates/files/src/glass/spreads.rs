//! Spreads of samples whose time is less than the interval in which it lies. They are in a chunk of their own before that of the
//! samples, so that readers that do not know it still read the samples.

use super::bytes::{Body, Malformed, Source};

/// Collects the spreads of one chunk of samples.
#[derive(Default)]
pub(crate) struct SpreadWriter {
    /// The row of the next sample in its chunk.
    row: u64,
    /// The row after the last one that has a spread.
    after: u64,
    body: Body,
}

impl SpreadWriter {
    /// The spread of the next row.
    pub fn push(&mut self, spread: u64) {
        if spread > 0 {
            self.body.number(self.row - self.after);
            self.body.number(spread);
            self.body.weight += 1;
            self.after = self.row + 1;
        }
        self.row += 1;
    }

    /// Returns the chunk if a row has a spread, and begins the next one.
    pub fn take(&mut self) -> Option<Body> {
        let body = std::mem::take(self).body;
        (!body.raw.is_empty()).then_some(body)
    }
}

/// The spreads of the next chunk of samples.
#[derive(Default)]
pub(crate) struct Spreads {
    /// Row and spread, in the order of rows.
    pending: Vec<(u64, u64)>,
    next: usize,
}

impl Spreads {
    /// Reads a chunk.
    pub fn read(&mut self, mut source: Source<'_>) -> Result<(), Malformed> {
        self.pending.clear();
        self.next = 0;
        let mut after = 0u64;
        while source.remaining() > 0 {
            source.spend(1)?;
            let row = after.checked_add(source.number()?);
            let row = row.ok_or_else(|| source.malformed("the row of a spread is no number"))?;
            self.pending.push((row, source.number()?));
            after = row.saturating_add(1);
        }
        Ok(())
    }

    /// The spread of a row. Rows are asked for in order.
    pub fn of_row(&mut self, row: u64) -> u64 {
        match self.pending.get(self.next) {
            Some(&(at, spread)) if at == row => {
                self.next += 1;
                spread
            }
            _ => 0,
        }
    }

    /// The chunk of samples has ended.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_with_a_spread_are_written() {
        let mut writer = SpreadWriter::default();
        let rows = [0, 7, 0, 0, 1 << 40, 1, 0];
        rows.iter().for_each(|spread| writer.push(*spread));
        let body = writer.take().expect("three rows have a spread");
        assert_eq!(body.weight, 3);
        let mut spreads = Spreads::default();
        spreads.read(Source::new(&body.raw, 3)).expect("what was written");
        let read: Vec<u64> = (0..7).map(|row| spreads.of_row(row)).collect();
        assert_eq!(read, rows);
        spreads.clear();
        assert_eq!(spreads.of_row(1), 0);
        rows.iter().for_each(|_| writer.push(0));
        assert!(writer.take().is_none());
    }

    #[test]
    fn more_spreads_than_bytes_are_refused() {
        let mut writer = SpreadWriter::default();
        (0..10).for_each(|_| writer.push(1));
        let body = writer.take().expect("ten rows have a spread");
        assert!(Spreads::default().read(Source::new(&body.raw, 9)).is_err());
    }
}
