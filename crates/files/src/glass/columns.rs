//! Large tables inside a chunk. Rows are split into columns, since similar values compress well together. Layout: number
//! of the first row, number of rows, length of each column, columns.

use super::bytes::{Body, CHUNK_TARGET, Malformed, Source, push_number, zigzag};

/// Columns being filled.
pub(crate) struct Columns<const N: usize> {
    first: u64,
    rows: u64,
    columns: [Vec<u8>; N],
}

impl<const N: usize> Columns<N> {
    /// Columns without rows. The next row has number `first` in its table.
    pub fn starting_at(first: u64) -> Columns<N> {
        Columns { first, rows: 0, columns: [const { Vec::new() }; N] }
    }

    /// Adds to a column.
    pub fn number(&mut self, column: usize, n: u64) {
        push_number(&mut self.columns[column], n);
    }

    /// Adds to a column.
    pub fn signed(&mut self, column: usize, n: i64) {
        self.number(column, zigzag(n));
    }

    /// Adds to a column.
    pub fn byte(&mut self, column: usize, byte: u8) {
        self.columns[column].push(byte);
    }

    /// Ends a row. Returns whether the chunk should be closed.
    pub fn end_row(&mut self) -> bool {
        self.rows += 1;
        self.columns.iter().map(Vec::len).sum::<usize>() >= CHUNK_TARGET
    }

    /// Returns the chunk if it has rows, and starts the next one.
    pub fn take(&mut self) -> Option<Body> {
        if self.rows == 0 {
            return None;
        }
        let mut body = Body::default();
        body.number(self.first);
        body.number(self.rows);
        for column in &self.columns {
            body.number(column.len() as u64);
        }
        for column in &self.columns {
            body.raw.extend_from_slice(column);
        }
        body.weight = self.rows;
        *self = Columns::starting_at(self.first + self.rows);
        Some(body)
    }
}

/// The columns of a chunk whose rows must begin with number `expected`.
pub(crate) fn split<'a, const N: usize>(
    source: &mut Source<'a>,
    expected: u64,
    what: &str,
) -> Result<(usize, [Source<'a>; N]), Malformed> {
    expect_first(source, expected, what)?;
    let rows = source.count(what)?;
    source.spend(rows as u64)?;
    let mut lengths = [0usize; N];
    for length in &mut lengths {
        *length = source.count("bytes of a column")?;
    }
    let mut columns = [const { None }; N];
    for (column, length) in columns.iter_mut().zip(lengths) {
        *column = Some(source.column(length)?);
    }
    source.end()?;
    Ok((rows, columns.map(|column| column.expect("all were set above"))))
}

/// Reads and checks the number of a chunk's first row. A gap means that an earlier chunk is missing.
pub(crate) fn expect_first(source: &mut Source<'_>, expected: u64, what: &str) -> Result<(), Malformed> {
    let first = source.number()?;
    if first != expected {
        return Err(source.malformed(format!("{what} from number {first}, expected {expected}")));
    }
    Ok(())
}
