//! Numbers, read back as the page reads them.

/// The numbers of a column.
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
