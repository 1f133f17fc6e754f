//! Messages for people, on stderr, each line marked as coming from Stackglass.

use crate::terminal::Layout;
use stackglass_profile::harmless;
use std::io::{self, Write};

/// Prefix of every message.
const PREFIX: &str = "stackglass: ";

/// Narrowest text, whatever the terminal says.
const NARROWEST: usize = 20;

/// Prints one line.
pub(crate) fn print(line: &str) {
    // Nothing can be done about a closed stderr.
    let _ = writeln!(io::stderr().lock(), "{PREFIX}{}", harmless(line));
}

/// Prints a text; on a terminal it is wrapped to the terminal's width.
pub(crate) fn print_wrapped(text: &str) {
    let layout = Layout::of_stderr();
    if !layout.terminal {
        return print(text);
    }
    let room = layout.columns.saturating_sub(PREFIX.len()).max(NARROWEST);
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            print(&std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    print(&line);
}
