//! The status line at the bottom of the terminal during a recording.
//!
//! The program writes to the same terminal and must not be disturbed. The bottom row is therefore removed from the
//! scrolling region, as apt does: the output of the program scrolls above it and is never overwritten. (A progress bar
//! that redraws its own line would erase that output.) While a program reads single keys, such as an editor or a prompt
//! with line editing, nothing is drawn.

use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetwinsize};
use stackglass_collect::recording::Progress;
use std::io::{IsTerminal, Write, stderr};

/// Terminals with fewer rows get no status line.
const FEWEST_ROWS: u16 = 8;

/// The status line, redrawn a few times a second.
pub(crate) struct StatusLine {
    wanted: bool,
    /// The size of the terminal while its bottom row is reserved.
    reserved: Option<Winsize>,
}

impl StatusLine {
    /// A status line; it stays invisible if `quiet`, or if stderr is no capable terminal.
    pub(crate) fn new(quiet: bool) -> StatusLine {
        let capable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        StatusLine { wanted: !quiet && capable && stderr().is_terminal(), reserved: None }
    }

    /// Draws the line.
    pub(crate) fn show(&mut self, progress: &Progress) {
        if !self.wanted {
            return;
        }
        let size = tcgetwinsize(stderr()).ok().filter(|size| size.ws_row >= FEWEST_ROWS);
        let line_mode = tcgetattr(stderr()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
        let Some(size) = size.filter(|_| line_mode) else { return self.clear() };
        let mut out = String::new();
        if self
            .reserved
            .is_none_or(|reserved| (reserved.ws_row, reserved.ws_col) != (size.ws_row, size.ws_col))
        {
            out += &reserve_bottom_row(size.ws_row);
            self.reserved = Some(size);
        }
        let text: String = line(progress).chars().take(usize::from(size.ws_col)).collect();
        out += &at_bottom(size.ws_row, &text);
        write(&out);
    }

    /// Frees the row. The next [`StatusLine::show`] reserves it again.
    pub(crate) fn clear(&mut self) {
        if let Some(size) = self.reserved.take() {
            // Save the cursor, whole screen scrolls, restore; then empty the row.
            write(&format!("\x1b7\x1b[r\x1b8{}", at_bottom(size.ws_row, "")));
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Makes room for a row below the cursor, then limits scrolling to the rows above the last one.
fn reserve_bottom_row(rows: u16) -> String {
    // Down one row (scrolling at the bottom, keeping the column) and up again.
    format!("\x1bD\x1b[1A\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// Writes to the bottom row and restores the cursor.
fn at_bottom(rows: u16, text: &str) -> String {
    format!("\x1b7\x1b[{rows};1H\x1b[2K{text}\x1b8")
}

fn write(text: &str) {
    // In one write. A closed terminal is not an error here.
    let _ = stderr().lock().write_all(text.as_bytes());
}

fn line(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    if !progress.sampling {
        return format!("recording {seconds:.1} s · not sampling");
    }
    let threads = match progress.threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    };
    let processes = match progress.processes {
        0 | 1 => String::new(),
        n => format!(" in {n} processes"),
    };
    format!(
        "recording {seconds:.1} s · {} samples · {threads}{processes} · {:.1} on CPU · {:.1} % of stacks cut",
        progress.samples,
        progress.running,
        progress.cut * 100.0
    )
}
