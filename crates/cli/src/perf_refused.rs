//! What the user reads where perf events are refused: the reason, and the ways out, one line each.

use crate::failure::{Failure, OWN_FAILURE};
use crate::message;
use stackglass_attach::Refusal;
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_collect::attached::AttachError;
use std::fmt::Display;

/// Prints the reason `why` and the ways out. `more` is another way.
pub(crate) fn failure(why: &dyn Display, refused: &PerfRefused, more: Option<&str>) -> Failure {
    print(why, &refused.ways_to_sample(), more)
}

/// The same for what copies a running program.
pub(crate) fn of_copies(why: &dyn Display, refused: &PerfRefused, more: Option<&str>) -> Failure {
    print(why, &refused.ways_out(), more)
}

fn print(why: &dyn Display, ways: &[String], more: Option<&str>) -> Failure {
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
        other => Failure::new(other),
    }
}
