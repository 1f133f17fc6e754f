//! Columns of numbers, as the page reads them.
//!
//! A column is a name and a list of unsigned numbers, each in LEB128: seven bits per byte, lowest first, with the eighth bit set if more
//! follow. Signed numbers are zigzag-encoded before. Equal columns of many samples compress well side by side, so that a sample takes few
//! bytes.

/// Columns, one after the other.
///
/// ```
/// use stackglass_view::columns::Columns;
///
/// let mut columns = Columns::default();
/// columns.push("samples.hits", [1, 200]);
/// assert_eq!(columns.bytes(), [1, 0xc8, 0x01]);
/// assert_eq!(columns.sizes(), [("samples.hits", 3)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Columns {
    sizes: Vec<(&'static str, usize)>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column.
    pub fn push(&mut self, name: &'static str, numbers: impl IntoIterator<Item = u64>) {
        let begin = self.bytes.len();
        numbers.into_iter().for_each(|number| leb128(&mut self.bytes, number));
        self.sizes.push((name, self.bytes.len() - begin));
    }

    /// Adds a column that is text, as it is.
    pub fn push_text(&mut self, name: &'static str, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.sizes.push((name, text.len()));
    }

    /// Names and sizes in bytes, in order.
    pub fn sizes(&self) -> &[(&'static str, usize)] {
        &self.sizes
    }

    /// All columns.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A signed number as an unsigned one: 0, -1, 1, -2, … are 0, 1, 2, 3, …
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
