//! Colours, kept apart from text: a line is made of painted pieces, cut to a width, and written
//! plain or with ANSI codes.

use crate::columns;
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

/// How a piece of text looks where colours are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Paint {
    #[default]
    Normal,
    Bold,
    /// Asleep, or of less interest.
    Grey,
    Red,
    Yellow,
    Green,
    Cyan,
    Magenta,
    BoldCyan,
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

/// A piece of a line.
#[derive(Clone, Debug, Default)]
struct Piece {
    paint: Paint,
    text: String,
    /// Address it leads to on a terminal.
    link: Option<String>,
}

/// A line of painted pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pieces: Vec<Piece>,
    /// All of it, whatever the colours of its pieces.
    bold: bool,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line::default()
    }

    pub(crate) fn push(&mut self, paint: Paint, text: impl Into<String>) -> &mut Line {
        self.pieces.push(Piece { paint, text: text.into(), link: None });
        self
    }

    /// A piece that leads somewhere.
    pub(crate) fn linked(&mut self, text: impl Into<String>, link: Option<String>) -> &mut Line {
        self.push_linked(Paint::Normal, text, link)
    }

    /// A painted piece that leads somewhere.
    pub(crate) fn push_linked(
        &mut self,
        paint: Paint,
        text: impl Into<String>,
        link: Option<String>,
    ) -> &mut Line {
        self.pieces.push(Piece { paint, text: text.into(), link });
        self
    }

    /// Whether the whole line is bold.
    pub(crate) fn bold(&mut self, bold: bool) -> &mut Line {
        self.bold = bold;
        self
    }

    pub(crate) fn plain(&mut self, text: impl Into<String>) -> &mut Line {
        self.push(Paint::Normal, text)
    }

    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|piece| columns::width(&piece.text)).sum()
    }

    /// Cuts the line as a whole at its right end.
    pub(crate) fn cut(&mut self, columns: usize) -> &mut Line {
        if self.width() <= columns {
            return self;
        }
        let mut left = columns;
        for index in 0..self.pieces.len() {
            let width = columns::width(&self.pieces[index].text);
            let rest_is_empty = self.pieces[index + 1..].iter().all(|piece| columns::width(&piece.text) == 0);
            // A piece that fills the line to its end leaves no room for the mark of the cut.
            if width < left || (width == left && rest_is_empty) {
                left -= width;
                continue;
            }
            let piece = &mut self.pieces[index].text;
            *piece = if width <= left {
                columns::cut_right(&format!("{piece}.."), left).into_owned()
            } else {
                columns::cut_right(piece, left).into_owned()
            };
            self.pieces.truncate(index + 1);
            break;
        }
        self
    }

    /// Writes the line and a line end.
    pub(crate) fn write(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        self.write_open(style, out)?;
        out.write_all(b"\n")
    }

    /// Writes the line, to be continued.
    pub(crate) fn write_open(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        for Piece { paint, text, link } in &self.pieces {
            if style == Style::Plain {
                out.write_all(text.as_bytes())?;
                continue;
            }
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
