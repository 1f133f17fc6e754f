//! The one rule for untrusted names in text output.
//!
//! Names come from files, arguments and threads of untrusted programs. Some characters control a terminal, change the
//! direction of the text around them, or are invisible. With them a name could move the cursor, look like another name,
//! or hide the text behind it. All text output for people writes them as escapes such as `\u{202e}`.

use std::borrow::Cow;

/// Returns the text with line ends and tabs as spaces, and with escapes for control characters, direction marks and
/// invisible characters.
///
/// ```
/// use stackglass_profile::sanitize;
///
/// assert_eq!(sanitize("naïve 漢字"), "naïve 漢字");
/// assert_eq!(sanitize("a\u{1b}[2Jb\u{202e}c\n"), r"a\u{1b}[2Jb\u{202e}c ");
/// ```
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if is_printable_ascii(text) || !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => plain.push(' '),
            c if acts(c) => plain.extend(c.escape_unicode()),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

/// Whether no character needs a closer look. True for nearly every name.
fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Whether a character changes the text around it or is invisible: controls, direction marks, line ends, what Unicode
/// calls *default ignorable*, and noncharacters.
///
/// Source: Unicode 16, `DerivedCoreProperties.txt` (Default_Ignorable_Code_Point) and `PropList.txt` (Bidi_Control,
/// Noncharacter_Code_Point).
fn acts(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control() || is_direction(c) || is_invisible(c) || is_noncharacter(c)
}

/// Direction marks, line separators and paragraph separators.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Joiners, fillers, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}')
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        || matches!(c, '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Noncharacters. XML forbids some of them.
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of each class, including the ends of ranges.
    const CLASSES: &[(&str, &[char])] = &[
        ("C0 controls", &['\0', '\u{7}', '\u{8}', '\u{b}', '\u{1b}', '\u{1f}']),
        ("delete", &['\u{7f}']),
        ("C1 controls", &['\u{80}', '\u{85}', '\u{9b}', '\u{9d}', '\u{9f}']),
        ("direction marks", &['\u{61c}', '\u{200e}', '\u{200f}']),
        ("embeddings and overrides", &['\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}']),
        ("isolates", &['\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}']),
        ("separators", &['\u{2028}', '\u{2029}']),
        ("zero width", &['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}']),
        ("invisible operators", &['\u{2061}', '\u{2064}', '\u{206a}', '\u{206f}']),
        ("hyphens and joiners", &['\u{ad}', '\u{34f}']),
        ("fillers", &['\u{115f}', '\u{1160}', '\u{17b4}', '\u{3164}', '\u{ffa0}']),
        ("variation selectors", &['\u{180b}', '\u{180e}', '\u{fe00}', '\u{fe0f}', '\u{e0100}', '\u{e01ef}']),
        ("annotations", &['\u{fff9}', '\u{fffb}']),
        ("shorthand and musical controls", &['\u{1bca0}', '\u{1d173}', '\u{1d17a}']),
        ("tags", &['\u{e0001}', '\u{e0020}', '\u{e007f}']),
        ("noncharacters", &['\u{fdd0}', '\u{fdef}', '\u{fffe}', '\u{ffff}', '\u{1ffff}', '\u{10fffe}']),
    ];

    #[test]
    fn each_class_is_written_out() {
        for (class, characters) in CLASSES {
            for c in *characters {
                let shown = sanitize(&format!("a{c}b")).into_owned();
                assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(*c)), "{class}");
            }
        }
    }

    #[test]
    fn ends_of_lines_are_spaces() {
        assert_eq!(sanitize("a\nb\r\nc\td"), "a b  c d");
    }

    #[test]
    fn what_people_write_stays() {
        for text in
            ["", "plain", "naïve", "e\u{301}", "日本語", "שלום", "مرحبا", "🦀", "a\u{fffd}", "├─ … ╎ ×"]
        {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text}");
        }
    }

    /// Characters of width zero are escaped, unless they combine with the character before them.
    #[test]
    fn nothing_is_left_that_cannot_be_seen() {
        let mark = |c: char| unicode_width::UnicodeWidthChar::width(c) == Some(0);
        let unseen: Vec<char> = ('\u{2000}'..='\u{20cf}').filter(|c| mark(*c) && !acts(*c)).collect();
        assert_eq!(unseen, [], "general punctuation has no marks that combine");
    }
}
