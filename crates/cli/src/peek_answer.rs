//! The text of a peek that the program itself has written: it is printed line by line, and made harmless.
//!
//! The program is untrusted, and may write anything. Its colours are kept: sequences `ESC [ digits and ; m`.

use stackglass_profile::sanitize;
use std::io::{self, Write};

/// Longest line that is waited for, in bytes. A longer one is printed in parts.
const LONGEST_LINE: usize = 64 << 10;

/// Prints an answer that comes in parts.
pub(crate) struct PeekAnswer<W> {
    out: W,
    /// The beginning of a line that is not complete yet.
    line: Vec<u8>,
}

impl<W: Write> PeekAnswer<W> {
    /// Prints to `out`.
    pub(crate) fn new(out: W) -> PeekAnswer<W> {
        PeekAnswer { out, line: Vec::new() }
    }

    /// Prints the complete lines of the next part.
    pub(crate) fn push(&mut self, part: &[u8]) -> io::Result<()> {
        self.line.extend_from_slice(part);
        let complete = match self.line.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.line.len() > LONGEST_LINE => self.line.len(),
            None => return Ok(()),
        };
        let lines: Vec<u8> = self.line.drain(..complete).collect();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.print(line)?;
        }
        self.out.flush()
    }

    /// Prints the last line, which has no end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.print(&line)?;
        self.out.flush()
    }

    /// Prints text of this command, which is harmless, after all complete lines.
    pub(crate) fn print_own(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)?;
        self.out.flush()
    }

    fn print(&mut self, line: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        let mut rest = text;
        while let Some(at) = rest.find('\u{1b}') {
            let (before, from_escape) = rest.split_at(at);
            let colour = colour_len(from_escape).unwrap_or(0);
            // An escape that is no colour is written out with the text behind it.
            let (kept, after) = from_escape.split_at(colour);
            write!(self.out, "{}{kept}", sanitize(before))?;
            let escape = if colour == 0 { 1 } else { 0 };
            write!(self.out, "{}", sanitize(&after[..escape]))?;
            rest = &after[escape..];
        }
        write!(self.out, "{}{end}", sanitize(rest))
    }
}

/// Length of the colour sequence at the start of the text.
fn colour_len(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("\u{1b}[")?;
    let len = digits.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    digits[len..].starts_with('m').then_some(2 + len + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(parts: &[&str]) -> String {
        let mut out = Vec::new();
        let mut answer = PeekAnswer::new(&mut out);
        for part in parts {
            answer.push(part.as_bytes()).unwrap();
        }
        answer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_and_colours_are_kept() {
        let text = "Thread 1 (é) 7: \u{1b}[1;31mrunning\u{1b}[0m\n  main at a.rs:1\nend";
        assert_eq!(printed(&[text]), text);
        // However it is cut into parts.
        let parts: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(printed(&parts.iter().map(String::as_str).collect::<Vec<_>>()), text);
    }

    #[test]
    fn other_escapes_and_marks_are_written_out() {
        assert_eq!(printed(&["a\u{1b}[2Jb\n"]), "a\\u{1b}[2Jb\n");
        assert_eq!(printed(&["a\u{1b}]0;title\u{7}\n"]), "a\\u{1b}]0;title\\u{7}\n");
        assert_eq!(printed(&["a\u{202e}b\r\n"]), "a\\u{202e}b \n");
        assert_eq!(printed(&["\u{1b}[3", "1mred\u{1b}"]), "\u{1b}[31mred\\u{1b}");
        assert_eq!(printed(&["\u{1b}[31\n"]), "\\u{1b}[31\n");
    }

    #[test]
    fn a_line_without_an_end_is_printed_in_parts() {
        let mut out = Vec::new();
        let mut answer = PeekAnswer::new(&mut out);
        answer.push(&vec![b'x'; LONGEST_LINE + 1]).unwrap();
        assert!(answer.line.is_empty());
    }
}
