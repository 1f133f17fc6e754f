//! What a peek has found: for whoever asked by `stackglass peek`, else on standard error.

use crate::terminal::Look;
use stackglass_collect::launch::PeekPart;
use stackglass_collect::peek_answer;
use stackglass_profile::Peek;
use stackglass_profile::Recording;
use stackglass_profile::peek::Activity;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

/// Set to a truthy value, a peek takes a heap snapshot as well.
const HEAP_VARIABLE: &str = "STACKGLASS_PEEK_HEAP_SNAPSHOT";

/// Shows a part of a peek at process `pid` in one piece.
pub(crate) fn answer(pid: u32, part: &PeekPart) {
    let look = Look::of_stderr();
    let mut text = Vec::new();
    // Writing to memory does not fail, and nothing can be done about a closed stderr.
    let (made, last) = match part {
        PeekPart::Threads { recording, activity, profile } => {
            (threads(recording, activity, *profile, &look, &mut text), false)
        }
        PeekPart::Report { recording } => (report(recording, &look, &mut text), true),
        PeekPart::Nothing { why } => (writeln!(text, "stackglass: {why}"), true),
    };
    if made.is_ok() && !peek_answer::give(pid, &text, last) {
        let _ = io::stderr().lock().write_all(&text);
    }
}

/// The first notice, where a profile follows, and what all threads do now.
pub(crate) fn threads(
    recording: &Recording,
    activity: &HashMap<u32, Activity>,
    profile: Option<Duration>,
    look: &Look,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let peek = peek(profile.unwrap_or_default(), look);
    if profile.is_some() {
        peek.begin(out)?;
    }
    peek.threads(recording, activity, out)
}

/// The second notice and the profile.
pub(crate) fn report(recording: &Recording, look: &Look, out: &mut Vec<u8>) -> io::Result<()> {
    let peek = peek(Duration::ZERO, look);
    peek.end(out)?;
    // Of the errors there are only one can come about here: writing.
    peek.report(recording, out).map_err(io::Error::other)?;
    if stackglass_profile::peek::is_truthy(std::env::var_os(HEAP_VARIABLE).as_deref()) {
        writeln!(out, "{}", stackglass_profile::peek::NO_HEAP_SNAPSHOT)?;
    }
    Ok(())
}

fn peek(duration: Duration, look: &Look) -> Peek {
    let columns = if look.terminal { look.columns } else { look.columns.min(120) };
    Peek::new(duration).cols(columns).style(look.style).links(look.links.clone())
}
