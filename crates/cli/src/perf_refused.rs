//! What the user reads where perf events are refused: the reason, and the ways out, one line each.

use crate::failure::{Failure, OWN_FAILURE};
use crate::message;
use stackglass_attach::Refusal;
use stackglass_attach::perf_refused::{PerfRefused, Rule};
use stackglass_collect::attached::AttachError;
use std::fmt::Display;

/// Prints the reason `why` and the ways out. `more` is another way.
pub(crate) fn failure(why: &dyn Display, refused: &PerfRefused, more: Option<&str>) -> Failure {
    print(why, refused, &refused.ways_to_sample(), more)
}

/// The same for what copies a running program.
pub(crate) fn of_copies(why: &dyn Display, refused: &PerfRefused, more: Option<&str>) -> Failure {
    print(why, refused, &refused.ways_out(), more)
}

fn print(why: &dyn Display, refused: &PerfRefused, ways: &[String], more: Option<&str>) -> Failure {
    // It names its way out.
    if refused.rule == Rule::OpenFiles {
        return Failure::new(refused);
    }
    message::print(&format!("{why}. Ways out (`stackglass doctor` checks them):"));
    for way in ways.iter().map(String::as_str).chain(more) {
        message::print(&format!("  {way}"));
    }
    Failure { status: OWN_FAILURE, line: String::new() }
}

/// The failure of a verb that samples a running process.
pub(crate) fn of_process(error: &AttachError) -> Failure {
    match error {
        AttachError::Refused(refusal) => of_refusal(refusal),
        AttachError::NoStops(refused) => of_copies(error, refused, None),
        other => Failure::new(other),
    }
}

/// The same for the refusal alone.
pub(crate) fn of_refusal(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::NoPerf(refused) => failure(refusal, refused, None),
        Refusal::Traced { .. } | Refusal::Taken { .. } => Failure::new(format!(
            "{refusal} (samples can also be taken without --sampler ptrace, where perf events are allowed)"
        )),
        other => Failure::new(other),
    }
}
