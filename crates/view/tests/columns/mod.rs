//! Columns, read back as the page reads them.

use stackglass_view::Packed;
use std::collections::HashMap;

/// The columns by name.
pub fn columns(packed: &Packed) -> HashMap<&'static str, Vec<u8>> {
    let mut bytes = packed.columns().bytes();
    let mut all = HashMap::new();
    for (name, size) in packed.columns().sizes() {
        let (column, rest) = bytes.split_at(*size);
        bytes = rest;
        all.insert(*name, column.to_vec());
    }
    assert!(bytes.is_empty());
    all
}
