//! The samples as a report, as Julia's buffer, and as a recording.

use crate::running;
use stackglass_profile::{Data, Dictionary, Recording};
use stackglass_report::Summary;
use std::io::{self, IsTerminal, Write};

/// Prints where the time went: a summary and a tree, on standard output, as wide as the terminal.
///
/// May be called inside a profiled region. A closed pipe is ignored.
pub fn print() {
    let out = io::stdout();
    let style = match out.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => stackglass_report::Style::Ansi,
        false => stackglass_report::Style::Plain,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(80);
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = write_report(&mut text, columns, style);
    let _ = out.lock().write_all(&text);
}

/// The text of [`print()`], without colours and `columns` wide.
///
/// ```
/// stackglass::profile!(std::hint::black_box((0..1000).sum::<u32>()));
/// println!("{}", stackglass::report(100));
/// ```
pub fn report(columns: usize) -> String {
    let mut text = Vec::new();
    let _ = write_report(&mut text, columns, stackglass_report::Style::Plain);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_report(out: &mut Vec<u8>, columns: usize, style: stackglass_report::Style) -> io::Result<()> {
    if running::is_delegated() {
        return writeln!(
            out,
            "This program runs under `stackglass record`, which takes the samples: see its report."
        );
    }
    let recording = recording();
    Summary::new().cols(columns).style(style).write(&recording, out)
}

/// A copy of all samples so far, symbolized.
///
/// It can be passed to a [`Report`](crate::Report) or stored.
pub fn recording() -> Recording {
    let mut recording = running::snapshot();
    stackglass_symbols::symbolize(&mut recording, &stackglass_symbols::Options::default(), &mut |_| {});
    recording
}

/// The samples in the format of Julia's buffer: for each snapshot, its addresses, leaf first, then thread, task,
/// clock, state and two zeros. Without metadata (`include_meta = false`), a single zero follows the addresses.
pub fn fetch(include_meta: bool) -> Data {
    let data = running::snapshot().data();
    match include_meta {
        true => data,
        // Data of our own making is consistent; if it were not, metadata would be better than nothing.
        false => data.strip_meta().unwrap_or(data),
    }
}

/// The samples and a dictionary of their addresses, to be stored or printed elsewhere.
pub fn retrieve() -> (Data, Dictionary) {
    let recording = recording();
    (recording.data(), recording.dictionary())
}
