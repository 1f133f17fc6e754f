//! Texts in JSON.

use stackglass_profile::harmless;

/// A string in JSON. Characters that would control a terminal are escaped as well.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            ' '..='~' => quoted.push(c),
            _ => {
                let same = c.encode_utf8(&mut buffer);
                if harmless(same) == *same {
                    quoted.push(c);
                } else {
                    let mut units = [0; 2];
                    let escapes = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
                    quoted.extend(escapes);
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("Vec<u8>"), "\"Vec<u8>\"");
        assert_eq!(
            string("a\"b\\c\n\u{7}\u{202e}\u{e0041}é漢"),
            r#""a\"b\\c\u000a\u0007\u202e\udb40\udc41é漢""#
        );
    }
}
