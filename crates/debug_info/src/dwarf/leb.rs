//! LEB128 numbers, as in DWARF 5 §7.6.

/// The position behind a LEB128 number.
#[inline]
pub fn skip_leb(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if byte < 0x80 {
            return Some(at);
        }
    }
}

/// An unsigned LEB128 number and the position behind it.
#[inline]
pub fn read_leb(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    at += 1;
    if first < 0x80 {
        return Some((u64::from(first), at));
    }
    let mut value = u64::from(first & 0x7f);
    let mut shift = 7;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        } else if byte & 0x7f != 0 {
            return None;
        }
        shift += 7;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
}

/// A signed LEB128 number and the position behind it.
pub fn read_signed_leb(bytes: &[u8], mut at: usize) -> Option<(i64, usize)> {
    let (mut value, mut shift) = (0i64, 0u32);
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if shift < 64 {
            value |= i64::from(byte & 0x7f) << shift;
        }
        shift = shift.saturating_add(7);
        if byte < 0x80 {
            if shift < 64 && byte & 0x40 != 0 {
                value |= -1 << shift;
            }
            return Some((value, at));
        }
    }
}
