//! JSON as text: numbers and strings, appended to a buffer.

const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Appends a number in decimal.
#[inline]
pub(super) fn number(out: &mut Vec<u8>, mut value: u32) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0_u8; 10];
    let mut at = digits.len();
    while value >= 10 {
        let pair = 2 * (value % 100) as usize;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value > 0 {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Stands for each character that is invalid in UTF-8. Viewers refuse U+FFFD.
const INVALID: &[u8] = b"[invalid unicode character]";

/// Appends a string in quotation marks.
pub(super) fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    contents(out, text);
    out.push(b'"');
}

/// Whether a name gets one more space before it. DevTools would show a node by another name if it began with "<" or were
/// "Object". Names that look as if they had got such a space get one as well, so that readers can remove it.
pub(super) fn gets_space(name: &[u8]) -> bool {
    let name = name.trim_ascii_start();
    name.starts_with(b"<") || name == b"Object"
}

/// Appends the inside of a string.
pub(super) fn contents(out: &mut Vec<u8>, text: &[u8]) {
    for part in text.utf8_chunks() {
        let mut pieces = part.valid().split(char::REPLACEMENT_CHARACTER);
        escaped(out, pieces.next().unwrap_or_default());
        for piece in pieces {
            out.extend_from_slice(INVALID);
            escaped(out, piece);
        }
        if !part.invalid().is_empty() {
            out.extend_from_slice(INVALID);
        }
    }
}

fn escaped(out: &mut Vec<u8>, text: &str) {
    let mut plain = text.as_bytes();
    while let Some(at) = plain.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')) {
        out.extend_from_slice(&plain[..at]);
        match plain[at] {
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        plain = &plain[at + 1..];
    }
    out.extend_from_slice(plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        for value in (0..20_000).chain([99_999, 100_000, 999_999_999, 1_000_000_000, u32::MAX - 1, u32::MAX])
        {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }

    #[test]
    fn strings_are_escaped_and_invalid_characters_replaced() {
        let written = |text: &[u8]| {
            let mut out = Vec::new();
            string(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(b"a\"b\\\x08\x0c\n\r\t\x01\x1f\x7f"),
            "\"a\\\"b\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""
        );
        assert_eq!(written("[é]".as_bytes()), "\"[é]\"");
        let bad = "[invalid unicode character]";
        assert_eq!(written(b"x\xffy\xc3"), format!("\"x{bad}y{bad}\""));
        assert_eq!(written("\u{fffd}z".as_bytes()), format!("\"{bad}z\""));
    }
}
