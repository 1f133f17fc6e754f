//! Coloured lines. A line consists of painted pieces. It is cut to a width and written plain or with ANSI codes.

use crate::text::columns;
use std::fmt;
use std::io::{self, Write};

/// Whether a report may use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// Plain text.
    #[default]
    Plain,
    /// ANSI escape codes.
    Ansi,
}

/// The colour of a piece of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Paint {
    /// That of all text.
    #[default]
    Normal,
    /// Headings, and what a line is about.
    Bold,
    /// Asleep or less important.
    Grey,
    /// More of what is unwanted.
    Red,
    /// A warning.
    Yellow,
    /// Less of what is unwanted.
    Green,
    /// A place or a note.
    Cyan,
    /// A group.
    Magenta,
    /// A name of a group.
    BoldCyan,
    /// A name of a group within another.
    BoldBlue,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Normal => "",
            Paint::Bold => "1",
            Paint::Grey => "90",
            Paint::Red => "31",
            Paint::Yellow => "33",
            Paint::Green => "32",
            Paint::Cyan => "36",
            Paint::Magenta => "35",
            Paint::BoldCyan => "1;36",
            Paint::BoldBlue => "1;34",
        }
    }
}

/// A piece of a line with one colour and link.
#[derive(Clone, Debug, Default)]
struct Piece {
    paint: Paint,
    /// Byte offset of its end in the text of the line.
    end: usize,
    /// URL that a terminal opens.
    link: Option<String>,
}

/// A line of painted pieces.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The text of all pieces, so that a reused line does not allocate.
    text: String,
    pieces: Vec<Piece>,
    /// Makes all pieces bold.
    bold: bool,
}

impl Line {
    /// An empty line.
    pub fn new() -> Line {
        Line::default()
    }

    /// A line of one piece.
    pub fn from_text(paint: Paint, text: impl fmt::Display) -> Line {
        let mut line = Line::new();
        line.push(paint, text);
        line
    }

    /// Empties the line for reuse.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.pieces.clear();
        self.bold = false;
    }

    /// Adds a painted piece.
    pub fn push(&mut self, paint: Paint, text: impl fmt::Display) -> &mut Line {
        self.push_linked(paint, text, None)
    }

    /// Adds a piece with a link.
    pub(crate) fn linked(&mut self, text: impl fmt::Display, link: Option<String>) -> &mut Line {
        self.push_linked(Paint::Normal, text, link)
    }

    /// Adds a painted piece with a link.
    pub(crate) fn push_linked(
        &mut self,
        paint: Paint,
        text: impl fmt::Display,
        link: Option<String>,
    ) -> &mut Line {
        // Formatting into a string does not fail.
        let _ = fmt::write(&mut self.text, format_args!("{text}"));
        self.pieces.push(Piece { paint, end: self.text.len(), link });
        self
    }

    /// Adds all pieces of another line.
    pub fn append(&mut self, other: Line) -> &mut Line {
        let begin = self.text.len();
        self.text += &other.text;
        self.pieces.extend(other.pieces.into_iter().map(|piece| Piece { end: piece.end + begin, ..piece }));
        self
    }

    /// Sets whether the whole line is bold.
    pub(crate) fn bold(&mut self, bold: bool) -> &mut Line {
        self.bold = bold;
        self
    }

    /// Adds a piece without a colour.
    pub fn plain(&mut self, text: impl fmt::Display) -> &mut Line {
        self.push(Paint::Normal, text)
    }

    /// Its width in columns.
    pub fn width(&self) -> usize {
        columns::width(&self.text)
    }

    /// Cuts the whole line at the right. The `…` belongs to the piece with the last column.
    pub fn cut(&mut self, columns: usize) -> &mut Line {
        if let Some(end) = columns::cut_at(&self.text, columns) {
            let last = self.pieces.iter().position(|piece| piece.end > end);
            self.pieces.truncate(last.map_or(0, |last| last + 1));
            self.text.truncate(end);
            self.text.push('…');
            if let Some(last) = self.pieces.last_mut() {
                last.end = self.text.len();
            }
        }
        self
    }

    /// Writes the line with a newline.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        self.write_open(style, out)?;
        out.write_all(b"\n")
    }

    /// Writes the line without a newline.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_open(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if style == Style::Plain {
            return out.write_all(self.text.as_bytes());
        }
        let mut start = 0;
        for Piece { paint, end, link } in &self.pieces {
            let text = &self.text[start..*end];
            start = *end;
            if let Some(link) = link {
                write!(out, "\x1b]8;;{link}\x1b\\")?;
            }
            match (self.bold, paint.code()) {
                _ if text.is_empty() => {}
                (false, "") => out.write_all(text.as_bytes())?,
                (true, "") => write!(out, "\x1b[1m{text}\x1b[0m")?,
                (false, code) => write!(out, "\x1b[{code}m{text}\x1b[0m")?,
                (true, code) => write!(out, "\x1b[1;{code}m{text}\x1b[0m")?,
            }
            if link.is_some() {
                out.write_all(b"\x1b]8;;\x1b\\")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Line, style: Style) -> String {
        let mut out = Vec::new();
        line.write(style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cutting_pieces_equals_cutting_their_text() {
        let whole = "ab漢cdefg";
        for split in [0, 1, 2, 5, 6, whole.len()] {
            for columns in 1..10 {
                let mut line = Line::new();
                line.plain(&whole[..split]).push(Paint::Bold, &whole[split..]).cut(columns);
                assert_eq!(
                    text(&line, Style::Plain).trim_end(),
                    columns::cut_right(whole, columns),
                    "{split} {columns}"
                );
            }
        }
    }

    #[test]
    fn colours_only_where_asked() {
        let mut line = Line::new();
        line.plain("a").push(Paint::Bold, "b");
        line.linked("c", Some("file:///c".into()));
        assert_eq!(text(&line, Style::Plain), "abc\n");
        let link = "\u{1b}]8;;file:///c\u{1b}\\c\u{1b}]8;;\u{1b}\\";
        assert_eq!(text(&line, Style::Ansi), format!("a\u{1b}[1mb\u{1b}[0m{link}\n"));
        let mut bold = Line::new();
        bold.bold(true).plain("a").push(Paint::Grey, "b").plain("");
        assert_eq!(text(&bold, Style::Ansi), "\u{1b}[1ma\u{1b}[0m\u{1b}[1;90mb\u{1b}[0m\n");
        assert_eq!(text(&bold, Style::Plain), "ab\n");
    }
}
