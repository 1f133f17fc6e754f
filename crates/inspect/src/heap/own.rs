//! A program saves its own heap: a forked child freezes its parent, reads the frozen copy and writes the file.
//!
//! The program itself allocates next to nothing for it, and waits no longer than a time limit. The child: `forked_child`.

use super::{SiteFrames, TakeOptions, take};
use crate::forked_child::{self, NoAnswer};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Longest result that is read.
const LONGEST_RESULT: u64 = 1 << 20;

/// What a heap snapshot of the own process contains, and what it cost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OwnTaken {
    /// Live blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of known type.
    pub typed_blocks: u64,
    /// How long the program was held up, except for the fork.
    pub pause: Duration,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// Why there is no heap snapshot of the own process.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// No child process could be made.
    #[error("no child process can be made for a heap snapshot: {0}")]
    NoChild(io::Error),
    /// The child could not save the heap.
    #[error("{0}")]
    NotTaken(String),
    /// The child was not ready in time, and was ended.
    #[error("the heap snapshot took longer than {0:?} and was given up")]
    TooLong(Duration),
    /// The child ended without a result.
    #[error("the child process that saved the heap has ended early (was it killed for lack of memory?)")]
    Lost,
}

/// Saves the heap of this process to `output`, within `limit`.
///
/// # Errors
/// [`OwnError`].
pub fn take_own(
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    output: &Path,
    limit: Duration,
) -> Result<OwnTaken, OwnError> {
    let mut work = |parent| {
        let text = match take(parent, options, site_frames, output) {
            Ok(taken) => {
                let totals = &taken.totals;
                let pause = taken.pause.whole.as_nanos();
                let mut text =
                    format!("ok {} {} {} {pause}\n", totals.blocks, totals.bytes, totals.typed_blocks);
                taken.remarks.iter().for_each(|remark| {
                    text.push_str(&remark.replace('\n', " "));
                    text.push('\n');
                });
                text
            }
            Err(error) => format!("error {error}"),
        };
        text.into_bytes()
    };
    let answer = forked_child::ask(limit, LONGEST_RESULT, &mut work).map_err(|error| match error {
        NoAnswer::NoChild(error) => OwnError::NoChild(error),
        NoAnswer::TooLong(limit) => OwnError::TooLong(limit),
    })?;
    parse(&String::from_utf8_lossy(&answer))
}

fn parse(text: &str) -> Result<OwnTaken, OwnError> {
    if let Some(error) = text.strip_prefix("error ") {
        return Err(OwnError::NotTaken(error.to_owned()));
    }
    let mut lines = text.lines();
    let numbers = lines.next().and_then(|line| line.strip_prefix("ok ")).ok_or(OwnError::Lost)?;
    let numbers: Vec<u64> = numbers.split(' ').map_while(|number| number.parse().ok()).collect();
    let &[blocks, bytes, typed_blocks, pause] = &numbers[..] else { return Err(OwnError::Lost) };
    let remarks = lines.map(str::to_owned).collect();
    Ok(OwnTaken { blocks, bytes, typed_blocks, pause: Duration::from_nanos(pause), remarks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_their_absence_are_read() {
        let taken = parse("ok 12 345 6 7000\na remark\n").unwrap();
        assert_eq!((taken.blocks, taken.bytes, taken.typed_blocks), (12, 345, 6));
        assert_eq!((taken.pause, taken.remarks), (Duration::from_nanos(7000), vec!["a remark".to_owned()]));
        assert!(matches!(parse("error no memory"), Err(OwnError::NotTaken(why)) if why == "no memory"));
        for lost in ["", "ok 1 2", "o", "ok 1 2 3 x"] {
            assert!(matches!(parse(lost), Err(OwnError::Lost)), "{lost}");
        }
    }
}
