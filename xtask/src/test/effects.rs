//! Third-party tools, alone and recorded: a step of the full run only, since their test suites take minutes.

use super::{Extent, Tally};
use crate::effects::runner;
use crate::run::shown_and_returned;
use anyhow::{Context, Result};

/// One check for each row.
pub fn run(extent: Extent) -> Result<Tally> {
    if extent == Extent::Quick {
        eprintln!("in a full run only");
        return Ok(Tally::default());
    }
    let (_, text) = shown_and_returned(&mut runner(&[])?, true)?;
    summary(&text).context("the effects did not come to their end")
}

/// Reads `12 passed, 1 failed`.
fn summary(text: &str) -> Option<Tally> {
    let line = text.lines().rev().find(|line| line.ends_with(" failed"))?;
    let (passed, failed) = line.split_once(", ")?;
    Some(Tally {
        passed: passed.strip_suffix(" passed")?.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_last_line_counts() {
        let tally = summary("row\n1 passed, 0 failed\n12 passed, 3 failed\n").expect("there is a line");
        assert_eq!((tally.passed, tally.failed), (12, 3));
        assert!(summary("error: could not compile").is_none());
    }
}
