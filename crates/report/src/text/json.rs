//! The white space, strings and numbers of JSON, as documented in `docs/json.md`. Equal reports give equal bytes.
//!
//! Each report declares its members as types, and this file writes them:
//!
//! * elements of lists that are objects or lists themselves are rows: each has a line of its own;
//! * characters that would control a terminal are escaped;
//! * reals have at most six decimals.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::ser::{CharEscape, Formatter};
use serde_json::value::RawValue;
use stackglass_profile::sanitize;
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

/// Writes a value, with rows on lines of their own, and ends the line.
///
/// ```
/// use serde::Serialize;
/// use stackglass_report::json;
///
/// #[derive(Serialize)]
/// struct Table {
///     total: u64,
///     rows: Vec<Row>,
/// }
///
/// #[derive(Serialize)]
/// struct Row {
///     function: &'static str,
///     error: Option<f64>,
/// }
///
/// let table = Table { total: 3, rows: vec![Row { function: "main", error: Some(0.5) }] };
/// let mut text = Vec::new();
/// json::write(&table, &mut text)?;
/// assert_eq!(text, b"{\"total\":3,\"rows\":[\n{\"function\":\"main\",\"error\":0.5}\n]}\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When writing fails.
pub fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    write_with(Layout { rows: true, ..Layout::default() }, value, out)
}

/// Writes a value on one line, and ends it.
///
/// # Errors
/// When writing fails.
pub fn write_line(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    write_with(Layout::default(), value, out)
}

/// As [`write()`]; members with these keys begin a line as well, unless they belong to a row.
///
/// # Errors
/// When writing fails.
pub fn write_sections(
    sections: &'static [&'static str],
    value: &impl Serialize,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_with(Layout { rows: true, sections, ..Layout::default() }, value, out)
}

fn write_with(layout: Layout, value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, layout))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// A list whose elements are made while it is written.
#[derive(Clone, Debug)]
pub struct Rows<I>(pub I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// A short value without lines of its own: its lists have no rows.
#[derive(Clone, Debug)]
pub struct InLine<T>(pub T);

impl<T: Serialize> Serialize for InLine<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::new();
        let mut line = serde_json::Serializer::with_formatter(&mut text, Layout::default());
        self.0.serialize(&mut line).map_err(S::Error::custom)?;
        let text = String::from_utf8(text).map_err(S::Error::custom)?;
        RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Where lines begin, and how strings and reals are written.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// Whether rows have lines of their own.
    rows: bool,
    /// Keys of members that begin a line, unless they belong to a row.
    sections: &'static [&'static str],
    /// For each open list, whether its elements are rows.
    lists: Vec<bool>,
    /// An element of the innermost list comes next.
    at_element: bool,
    /// A key comes next that may begin a line.
    at_key: bool,
}

impl Layout {
    /// Before an object or list: begins a line if it is a row.
    fn begin_row(&mut self, out: &mut (impl ?Sized + Write)) -> io::Result<()> {
        if !(std::mem::take(&mut self.at_element) && self.rows) {
            return Ok(());
        }
        if let Some(list) = self.lists.last_mut() {
            *list = true;
        }
        out.write_all(b"\n")
    }

    /// Before the first characters of a text: the quotation mark of a key, which is still missing.
    fn begin_key(&mut self, text: &str, out: &mut (impl ?Sized + Write)) -> io::Result<()> {
        match std::mem::take(&mut self.at_key) {
            true if self.sections.contains(&text) => out.write_all(b"\n\""),
            true => out.write_all(b"\""),
            false => Ok(()),
        }
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_row(out)?;
        self.lists.push(false);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let has_rows = self.lists.pop().unwrap_or(false);
        out.write_all(if has_rows { b"\n]" } else { b"]" })
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.at_element = true;
        out.write_all(if first { b"" } else { b"," })
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.at_element = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_row(out)?;
        out.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.at_key = self.lists.is_empty() && !self.sections.is_empty();
        out.write_all(if first { b"" } else { b"," })
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.at_key { b"" } else { b"\"" })
    }

    fn end_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_key("", out)?;
        out.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        self.begin_key(fragment, out)?;
        if let Cow::Borrowed(_) = sanitize(fragment) {
            return out.write_all(fragment.as_bytes());
        }
        let mut buffer = [0; 4];
        for c in fragment.chars() {
            let same = c.encode_utf8(&mut buffer);
            if sanitize(same) == *same {
                out.write_all(same.as_bytes())?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escaped: CharEscape) -> io::Result<()> {
        self.begin_key("", out)?;
        let control = match escaped {
            CharEscape::Quote => return out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return out.write_all(b"\\\\"),
            CharEscape::Solidus => return out.write_all(b"/"),
            CharEscape::Backspace => 8,
            CharEscape::Tab => b'\t',
            CharEscape::LineFeed => b'\n',
            CharEscape::FormFeed => 12,
            CharEscape::CarriageReturn => b'\r',
            CharEscape::AsciiControl(byte) => byte,
        };
        write!(out, "\\u{control:04x}")
    }

    /// Infinity and what is no number are `null` already.
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        // No negative zero.
        write!(out, "{}", (value * 1e6).round() / 1e6 + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Serialize) -> String {
        let mut text = Vec::new();
        write(&value, &mut text).expect("memory can be written");
        String::from_utf8(text).expect("it is text")
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(text("Vec<u8>"), "\"Vec<u8>\"\n");
        assert_eq!(
            text("a\"b\\c\n\u{7}\u{202e}\u{e0041}é漢"),
            "\"a\\\"b\\\\c\\u000a\\u0007\\u202e\\udb40\\udc41é漢\"\n"
        );
        assert_eq!(text("\u{8}\t\u{c}\r\u{7f}/"), "\"\\u0008\\u0009\\u000c\\u000d\\u007f/\"\n");
    }

    #[test]
    fn reals_have_six_decimals() {
        let values = [1.0, 0.1234567, -1e-9, 2e15, f64::INFINITY, f64::NAN];
        assert_eq!(text(values), "[1,0.123457,0,2000000000000000,null,null]\n");
    }

    #[derive(Serialize)]
    struct Row {
        key: u8,
        rows: Vec<Row>,
    }

    #[test]
    fn objects_and_lists_in_lists_are_rows() {
        let row = |key, rows| Row { key, rows };
        let all = row(1, vec![row(2, vec![row(3, vec![]), row(4, vec![])]), row(5, vec![])]);
        let inner = "{\"key\":2,\"rows\":[\n{\"key\":3,\"rows\":[]},\n{\"key\":4,\"rows\":[]}\n]}";
        assert_eq!(text(&all), format!("{{\"key\":1,\"rows\":[\n{inner},\n{{\"key\":5,\"rows\":[]}}\n]}}\n"));
        assert_eq!(text([[1, 2], [3, 4]]), "[\n[1,2],\n[3,4]\n]\n");
        let mut line = Vec::new();
        write_line(&all, &mut line).expect("memory can be written");
        let line = String::from_utf8(line).expect("it is text");
        assert_eq!(line, text(&all).replace('\n', "") + "\n");
        assert_eq!(text(InLine(&all)), line);
        assert_eq!(text(Rows([&all].iter())), format!("[\n{}\n]\n", text(&all).trim_end()));
    }

    #[test]
    fn sections_begin_lines() {
        let all = Row { key: 1, rows: vec![Row { key: 2, rows: vec![] }] };
        let mut out = Vec::new();
        write_sections(&["rows"], &all, &mut out).expect("memory can be written");
        assert_eq!(out, b"{\"key\":1,\n\"rows\":[\n{\"key\":2,\"rows\":[]}\n]}\n");
    }
}
