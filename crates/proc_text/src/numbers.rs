//! Numbers in the text of /proc, which must fill the whole text.

/// A decimal number.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, b| {
        b.is_ascii_digit().then(|| n.checked_mul(10)?.checked_add(u64::from(b - b'0'))).flatten()
    })
}

/// A hexadecimal number without a prefix.
pub fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0u64, |n, b| Some(n << 4 | u64::from((*b as char).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_that_fit_are_read() {
        assert_eq!((decimal(b"0"), decimal(b"18446744073709551615")), (Some(0), Some(u64::MAX)));
        assert_eq!(
            (hexadecimal(b"ffffFFFFffffffff"), hexadecimal(b"00400000")),
            (Some(u64::MAX), Some(1 << 22))
        );
        for text in [&b""[..], b"18446744073709551616", b"1 ", b"-1", b"a", b"\xff"] {
            assert_eq!(decimal(text), None, "{text:?}");
        }
        for text in [&b""[..], b"0x1", b"10000000000000000", b"g", b"\xff"] {
            assert_eq!(hexadecimal(text), None, "{text:?}");
        }
    }
}
