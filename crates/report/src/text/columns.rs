//! Text measured in terminal columns: width, truncation, padding.
//!
//! Widths are counted character by character, as Julia's `textwidth` does: wide characters take
//! two columns, combining ones none. A wide character that does not fit leaves one column empty.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

#[inline]
fn char_width(c: char) -> usize {
    // Nearly all text, and the lines of trees.
    if matches!(c, ' '..='~' | '\u{2500}'..='\u{257f}') { 1 } else { other_width(c) }
}

/// A separate function, so that the usual case can be inlined.
#[inline(never)]
fn other_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Whether all characters are printable ASCII.
pub(crate) fn is_simple(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The width of a text in columns.
pub fn width(text: &str) -> usize {
    if is_simple(text) { text.len() } else { text.chars().map(char_width).sum() }
}

/// The byte offset at which to cut a text so that `…` fits behind it; `None` if it fits uncut.
pub(crate) fn cut_at(text: &str, columns: usize) -> Option<usize> {
    // No character takes more columns than bytes.
    if text.len() <= columns {
        return None;
    }
    let (mut end, mut used) = (None, 0);
    for (at, c) in text.char_indices() {
        used += char_width(c);
        if used >= columns && end.is_none() {
            end = Some(at);
        }
        if used > columns {
            return end;
        }
    }
    None
}

/// The text, cut at the right to `columns`. A cut is marked by `…`.
pub fn cut_right(text: &str, columns: usize) -> Cow<'_, str> {
    match cut_at(text, columns) {
        Some(end) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text, cut at the left to `columns`. A cut is marked by `…`.
pub fn cut_left(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let fits = |&(_, c): &(usize, char)| {
        used += char_width(c);
        used <= columns
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("…{}", &text[start..]))
}

/// The text, padded with spaces on the right to `columns`. Never cut.
pub(crate) fn pad_right(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text, padded with spaces on the left to `columns`. Never cut.
pub fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Number of decimal digits, as Julia's `ndigits`.
pub(crate) fn digits(n: u64) -> usize {
    n.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The text, wrapped at spaces into lines of at most `columns`. Longer words are not broken.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => *line = format!("{line} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_columns() {
        assert_eq!(cut_right("abcdef", 6), "abcdef");
        assert_eq!(cut_right("abcdef", 4), "abc…");
        assert_eq!(cut_left("abcdef", 4), "…def");
        assert_eq!(cut_right("漢字漢字", 4), "漢…", "a wide character that does not fit leaves a column");
        assert_eq!(cut_left("漢字漢字", 4), "…字");
        assert_eq!(cut_right("abc", 0), "…");
        assert_eq!(cut_right("ae\u{301}z", 2), "a…", "the combining accent belongs to what was cut");
    }

    #[test]
    fn usual_characters_are_measured_as_all_others() {
        for c in '\0'..'\u{3000}' {
            assert_eq!(char_width(c), c.width().unwrap_or(0), "{c:?}");
            assert!(char_width(c) <= c.len_utf8(), "{c:?}");
        }
        for text in ["", "plain", "a\tb", "e\u{301}", "├─", "漢"] {
            assert_eq!(width(text), text.chars().map(other_width).sum::<usize>(), "{text:?}");
        }
    }

    #[test]
    fn texts_wrap_at_spaces() {
        assert_eq!(wrap("a bb ccc dddddd e", 5), ["a bb", "ccc", "dddddd", "e"]);
    }

    #[test]
    fn digits_of_the_extremes() {
        assert_eq!((digits(0), digits(9), digits(10), digits(u64::MAX)), (1, 1, 2, 20));
    }
}
