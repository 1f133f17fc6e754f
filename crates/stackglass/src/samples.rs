//! The samples as a report, as Julia's buffer, or as a recording.

use crate::running;
use stackglass_profile::{Data, Dictionary, Recording, sanitize};
use stackglass_report::{Report, Style, Summary};
use std::io::{self, IsTerminal, Write};

/// Prints a summary and a tree of where the time went to standard output, as wide as the terminal.
///
/// May be called inside a profiled region. A closed pipe is ignored.
pub fn print() {
    let (columns, style) = layout();
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = write_report(&mut text, columns, style);
    let _ = io::stdout().lock().write_all(&text);
}

/// Prints the tree of Julia's `Profile.print()` to standard output: [`Report::new`] as wide as the terminal. What limits it
/// follows on standard error.
///
/// ```
/// stackglass::profile!(std::hint::black_box((0..1000).sum::<u32>()));
/// stackglass::print_tree();
/// ```
pub fn print_tree() {
    let (columns, style) = layout();
    let mut text = Vec::new();
    let written = match running::is_delegated() {
        true => write_report(&mut text, columns, style).map(|()| Vec::new()).unwrap_or_default(),
        // Writing to memory does not fail, and the options do not contradict each other.
        false => {
            let written = Report::new().cols(columns).style(style).write(&recording(), &mut text);
            written.map(|written| written.warnings).unwrap_or_default()
        }
    };
    let _ = io::stdout().lock().write_all(&text);
    for warning in written {
        eprintln!("stackglass: {}", sanitize(&warning));
    }
}

/// Width and style of standard output.
pub(crate) fn layout() -> (usize, Style) {
    let style = match io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => Style::Ansi,
        false => Style::Plain,
    };
    (std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(80), style)
}

/// The text that [`print()`] prints, without colours and `columns` wide.
///
/// ```
/// stackglass::profile!(std::hint::black_box((0..1000).sum::<u32>()));
/// println!("{}", stackglass::report(100));
/// ```
pub fn report(columns: usize) -> String {
    let mut text = Vec::new();
    let _ = write_report(&mut text, columns, Style::Plain);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_report(out: &mut Vec<u8>, columns: usize, style: Style) -> io::Result<()> {
    if running::is_delegated() {
        return writeln!(
            out,
            "This program runs under `stackglass record`, which samples it: see its report."
        );
    }
    let recording = recording();
    Summary::new().cols(columns).style(style).write(&recording, out)
}

/// A copy of all samples so far, with names, for a [`Report`](crate::Report) or for later.
pub fn recording() -> Recording {
    let mut recording = running::snapshot();
    stackglass_symbols::symbolize(&mut recording, &stackglass_symbols::Options::default(), &mut |_| {});
    stackglass_collect::in_process::join_polls_and_waits(&mut recording);
    recording
}

/// The samples as Julia's buffer. Each snapshot has its addresses, leaf first, then thread, task, clock, state and two zeros.
/// Without metadata (`include_meta = false`) a single zero follows the addresses.
pub fn fetch(include_meta: bool) -> Data {
    let data = running::snapshot().data();
    match include_meta {
        true => data,
        // This data is consistent. If it were not, metadata would be better than nothing.
        false => data.strip_meta().unwrap_or(data),
    }
}

/// The samples with the names of their addresses, to be stored or printed elsewhere.
pub fn retrieve() -> (Data, Dictionary) {
    let recording = recording();
    (recording.data(), recording.dictionary())
}
