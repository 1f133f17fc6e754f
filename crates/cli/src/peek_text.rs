//! What a peek has found: for whoever asked by `stackglass peek`, else on standard error.

use crate::terminal::Layout;
use foldhash::HashMap;
use stackglass_collect::peeks::PeekPart;
use stackglass_collect::peeks::responder::Responder;
use stackglass_profile::{Activity, Recording};
use stackglass_report::{Peek, Style};
use std::io::{self, Write};
use std::time::Duration;

/// Set to a truthy value, a peek takes a heap snapshot as well.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";

/// Standard error of a program in the background is a log, read by people: no wider than that.
const WIDEST_LOG: usize = 120;

/// Shows a part of a peek in one piece, as wide as whoever asked wishes.
pub(crate) fn answer(part: &PeekPart, responder: &Responder) {
    let mut look = Layout::of_stderr();
    if !responder.is_stderr() {
        let style = if responder.options().colours { Style::Ansi } else { Style::Plain };
        let columns = responder.options().columns.unwrap_or(look.columns);
        look = Layout { columns, style, terminal: false, links: None };
    } else if !look.terminal {
        look.columns = look.columns.min(WIDEST_LOG);
    }
    let mut text = Vec::new();
    // Writing to memory does not fail, and nothing can be done about a closed stderr.
    let made = match part {
        PeekPart::Threads { recording, activity, profile } => {
            threads(recording, activity, *profile, &look, &mut text)
        }
        PeekPart::Report { recording, .. } => report(recording, &look, &mut text),
        PeekPart::Nothing { why } => writeln!(text, "stackglass: {why}"),
    };
    if made.is_ok() && !responder.write(&text) {
        let _ = io::stderr().lock().write_all(&text);
    }
    if let PeekPart::Report { early, .. } = part {
        responder.finish(!early);
    }
}

/// The first notice, where a profile follows, and what all threads do now.
pub(crate) fn threads(
    recording: &Recording,
    activity: &HashMap<u32, Activity>,
    profile: Option<Duration>,
    look: &Layout,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let peek = peek(profile.unwrap_or_default(), look);
    if profile.is_some() {
        peek.begin(out)?;
    }
    peek.threads(recording, activity, out)
}

/// The second notice and the profile.
pub(crate) fn report(recording: &Recording, look: &Layout, out: &mut Vec<u8>) -> io::Result<()> {
    let peek = peek(Duration::ZERO, look);
    peek.end(out)?;
    // Of the errors there are only one can come about here: writing.
    peek.report(recording, out).map_err(io::Error::other)?;
    if stackglass_report::peek::is_truthy(std::env::var_os(HEAP_VARIABLE).as_deref()) {
        writeln!(out, "{}", stackglass_report::peek::NO_HEAP_SNAPSHOT)?;
    }
    Ok(())
}

fn peek(duration: Duration, look: &Layout) -> Peek {
    Peek::new(duration).cols(look.columns).style(look.style).links(look.links.clone())
}
