//! The complete tests of the unwinder: every instruction of a program against a shadow stack, and every unwind row of real
//! files against an oracle.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use crate::run::{cargo, shown, shown_and_returned};
use anyhow::{Result, bail};

/// Instructions that must be stepped through.
const INSTRUCTIONS: f64 = 1e6;

/// Reads the output of the tests.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut nextest =
        cargo(&["nextest", "run", "--release", "-p", "stackglass-unwind", "--run-ignored", "all"]);
    nextest.args(["--no-capture", "-E", "binary(shadow_stack) | test(/^oracle_rows::/)"]);
    if let Some(ripgrep) = &setup.peers.ripgrep {
        nextest.env("STACKGLASS_RG", ripgrep);
    }
    let (succeeded, report) = shown_and_returned(&mut nextest, true)?;
    let mut figures: Vec<Figure> = Vec::new();
    for line in report.lines() {
        match (figure(line), figures.last_mut()) {
            (Some(next), _) => figures.push(next),
            (None, Some(last)) => add_exceptions(last, line),
            (None, None) => {}
        }
    }
    if figures.is_empty() {
        bail!("{} printed no figures", shown(&nextest));
    }
    if !succeeded {
        figures.push(Figure::must(
            "tests that failed",
            Interval::exact(1.0),
            Unit::Count,
            Bound::AtMost(0.0),
        ));
    }
    Ok(figures)
}

/// `N times in code without rules: [places]`: an addition to the figure before it; the places are
/// in the test's own output.
fn add_exceptions(last: &mut Figure, line: &str) {
    if let Some((times, _)) = line.split_once(" times in code without rules")
        && times.trim() != "0"
    {
        last.add_note(&format!("{} instructions in code without unwind tables", times.trim()));
    }
}

/// `N instructions, …, W wrong at P places` or `FILE: N rows, W different, …`.
fn figure(line: &str) -> Option<Figure> {
    let number_before = |what: &str| -> Option<f64> {
        line.split_once(what)?.0.trim_end().rsplit([' ', ',']).next()?.parse().ok()
    };
    let all = |what: String, all: f64, wrong: f64| {
        let right = Interval::exact(1.0 - wrong / all);
        // Without the path of the file, which is in the figure's name.
        let note = line.rsplit_once(": ").map_or(line, |(_, note)| note);
        Figure::must(what, right, Unit::Percent, Bound::AtLeast(1.0)).note(note.trim())
    };
    if let (Some(steps), Some(wrong)) = (number_before(" instructions"), number_before(" wrong at")) {
        let what =
            if steps < INSTRUCTIONS { "shadow stack, short run" } else { "shadow stack, single steps" };
        return Some(all(what.into(), steps, wrong));
    }
    let (path, rows) = line.trim().split_once(": ")?;
    let (rows, wrong) = (rows.split_once(" rows")?.0.parse().ok()?, number_before(" different")?);
    let file = path.rsplit('/').next().unwrap_or(path);
    let file = if file.starts_with("walks-") { "the test program" } else { file };
    Some(all(format!("rows of {file} against the oracle"), rows, wrong))
}
