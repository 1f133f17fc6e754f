//! Messages for people, on stderr, each line marked as coming from Stackglass.

use crate::terminal::Layout;
use stackglass_profile::sanitize;
use std::io::{self, Write};

/// Prefix of every message.
const PREFIX: &str = "stackglass: ";

/// Narrowest text, whatever the terminal says.
const NARROWEST: usize = 20;

/// Prints a message. On a terminal it is wrapped at words to the terminal's width; elsewhere it is one line.
pub(crate) fn print(text: &str) {
    let text = sanitize(text);
    let layout = Layout::of_stderr();
    let room = if layout.terminal { layout.columns.saturating_sub(PREFIX.len()) } else { usize::MAX };
    for line in wrap(&text, room.max(NARROWEST)) {
        // Nothing can be done about a closed stderr.
        let _ = writeln!(io::stderr().lock(), "{PREFIX}{line}");
    }
}

/// Breaks a text between words into lines of at most `room` columns. A longer word gets a line of its own. Escape
/// sequences for colours take no room. Leading blanks are kept.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for (index, word) in text.split(' ').enumerate() {
        let wide = columns(word);
        if index > 0 && used > 0 && used + 1 + wide > room && !line.trim().is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else if index > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += wide;
    }
    lines.push(line);
    lines
}

/// Columns that a word takes on a terminal, without escape sequences.
fn columns(word: &str) -> usize {
    let mut parts = word.split('\x1b');
    let first = parts.next().map_or(0, |plain| plain.chars().count());
    let escaped = parts.map(|part| part.split_once('m').map_or(0, |(_, plain)| plain.chars().count()));
    first + escaped.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("/a/path/that/is/long is it", 6), ["/a/path/that/is/long", "is it"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("  indented words", 10), ["  indented", "words"]);
        let coloured = "\x1b[31mone\x1b[0m two three";
        assert_eq!(wrap(coloured, 7), ["\x1b[31mone\x1b[0m two", "three"]);
        assert_eq!(wrap("one two", usize::MAX), ["one two"]);
    }
}
