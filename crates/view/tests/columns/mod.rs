//! Columns, read back as the page reads them.

use stackglass_view::Packed;
use std::collections::HashMap;

/// The columns by name.
#[allow(dead_code, reason = "not all tests use it")]
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

/// The numbers of a column.
#[allow(dead_code, reason = "not all tests use it")]
pub fn numbers(bytes: &[u8]) -> Vec<u64> {
    let (mut all, mut value, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            all.push(value);
            (value, shift) = (0, 0);
        }
    }
    all
}
