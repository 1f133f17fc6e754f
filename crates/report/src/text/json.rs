//! JSON objects, as documented in `docs/json.md`. Equal reports give equal bytes.

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

/// A JSON object, member by member.
///
/// ```
/// use stackglass_report::json::Object;
///
/// let row = Object::new().text("function", "main").number("own", 3).real("error", None).end();
/// assert_eq!(row, r#"{"function":"main","own":3,"error":null}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Object {
        Object::default()
    }

    /// Adds a member whose value is JSON already.
    pub fn raw(mut self, key: &str, value: impl std::fmt::Display) -> Object {
        self.0 += if self.0.is_empty() { "{" } else { "," };
        // Formatting into a string does not fail.
        let _ = std::fmt::write(&mut self.0, format_args!("\"{key}\":{value}"));
        self
    }

    /// Adds a text. Characters that would control a terminal are escaped.
    pub fn text(self, key: &str, value: &str) -> Object {
        self.raw(key, string(value))
    }

    /// Adds a text, or `null`.
    pub fn text_or_null(self, key: &str, value: Option<&str>) -> Object {
        self.raw(key, value.map_or("null".to_owned(), string))
    }

    /// Adds a whole number.
    pub fn number(self, key: &str, value: u64) -> Object {
        self.raw(key, value)
    }

    /// Adds a whole number under a key that comes from elsewhere.
    pub fn named(mut self, key: &str, value: u64) -> Object {
        self.0 += if self.0.is_empty() { "{" } else { "," };
        self.0 += &format!("{}:{value}", string(key));
        self
    }

    /// Adds a whole number, or `null`.
    pub fn number_or_null(self, key: &str, value: Option<u64>) -> Object {
        self.raw(key, value.map_or("null".to_owned(), |value| value.to_string()))
    }

    /// Adds a number with at most six decimals; `null` for none, and for infinity.
    pub fn real(self, key: &str, value: Option<f64>) -> Object {
        let known = value.filter(|value| value.is_finite());
        // No negative zero.
        let rounded = known.map(|value| (value * 1e6).round() / 1e6 + 0.0);
        self.raw(key, rounded.map_or("null".to_owned(), |value| value.to_string()))
    }

    /// Adds true or false.
    pub fn flag(self, key: &str, value: bool) -> Object {
        self.raw(key, value)
    }

    /// Adds a list of texts.
    pub fn texts<'a>(self, key: &str, values: impl IntoIterator<Item = &'a str>) -> Object {
        let values: Vec<String> = values.into_iter().map(string).collect();
        self.raw(key, format_args!("[{}]", values.join(",")))
    }

    /// Adds a list of objects, one per line.
    pub fn list(self, key: &str, values: impl IntoIterator<Item = Object>) -> Object {
        let values: Vec<String> = values.into_iter().map(|value| format!("\n{}", value.end())).collect();
        let end = if values.is_empty() { "" } else { "\n" };
        self.raw(key, format_args!("[{}{end}]", values.join(",")))
    }

    /// The text of the object.
    pub fn end(self) -> String {
        if self.0.is_empty() { "{}".to_owned() } else { self.0 + "}" }
    }
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
