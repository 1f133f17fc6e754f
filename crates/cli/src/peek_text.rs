//! Prints the parts of a peek, to the `stackglass peek` that asked or to stderr.

use crate::heap::PeekSnapshots;
use crate::terminal::Layout;
use foldhash::HashMap;
use stackglass_collect::peeks::PeekPart;
use stackglass_collect::peeks::responder::Responder;
use stackglass_profile::{Activity, Recording};
use stackglass_report::{Peek, Style};
use std::io::{self, Write};
use std::time::Duration;

/// As in Julia, a truthy value asks for a heap snapshot after the report.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";

/// Width of a peek in a log file.
const WIDEST_LOG: usize = 120;

/// Whether a peek saves a heap snapshot as well.
pub(crate) fn wants_heap_snapshot() -> bool {
    stackglass_report::peek::is_truthy(std::env::var_os(HEAP_VARIABLE).as_deref())
}

/// Prints one part of a peek at process `pid` in one write, in the width that was requested. Then saves a heap snapshot, if that
/// is wanted.
pub(crate) fn answer(pid: u32, part: &PeekPart, responder: &Responder, snapshots: &mut PeekSnapshots) {
    let mut layout = Layout::of_stderr();
    if !responder.is_stderr() {
        let style = if responder.options().colours { Style::Ansi } else { Style::Plain };
        let columns = responder.options().columns.unwrap_or(layout.columns);
        layout = Layout { style, ..Layout::of_file(Some(columns)) };
    } else if !layout.terminal {
        layout.columns = layout.columns.min(WIDEST_LOG);
    }
    let mut text = Vec::new();
    // Writing to memory does not fail, and a closed stderr is not an error.
    let made = match part {
        PeekPart::Threads { recording, activity, profile } => {
            threads(recording, activity, *profile, &layout, &mut text)
        }
        PeekPart::Report { recording, .. } => report(recording, &layout, &mut text),
        PeekPart::Nothing { why } => writeln!(text, "stackglass: {why}"),
    };
    if made.is_ok() && !responder.write(&text) {
        let _ = io::stderr().lock().write_all(&text);
    }
    match part {
        PeekPart::Report { early: false, .. } if wants_heap_snapshot() => {
            snapshots.save(pid, responder.clone())
        }
        PeekPart::Report { early, .. } => responder.finish(!early),
        _ => {}
    }
}

/// Writes what all threads are doing now. If a profile follows, a notice comes first.
pub(crate) fn threads(
    recording: &Recording,
    activity: &HashMap<u32, Activity>,
    profile: Option<Duration>,
    layout: &Layout,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let peek = peek(profile.unwrap_or_default(), layout);
    if profile.is_some() {
        peek.begin(out)?;
    }
    peek.threads(recording, activity, out)
}

/// Writes the second notice and the profile.
pub(crate) fn report(recording: &Recording, layout: &Layout, out: &mut Vec<u8>) -> io::Result<()> {
    let peek = peek(Duration::ZERO, layout);
    peek.end(out)?;
    // The only possible error is a failed write.
    peek.report(recording, out).map_err(io::Error::other)?;
    Ok(())
}

fn peek(duration: Duration, layout: &Layout) -> Peek {
    Peek::new(duration).cols(layout.columns).style(layout.style).links(layout.links.clone())
}
