//! The rows that `diff` marks: hardly any in two runs of the same program, and the one function that was made slower.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use crate::run::output;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs whose runs are compared with one another.
const SAME: [&[&str]; 3] = [
    &["variants", "--work", "2000"],
    &["mix", "--seconds", "3"],
    &["allocate", "--threads", "2", "--seconds", "3"],
];

/// Marked rows and all rows of a comparison, and the first row.
struct Table {
    marked: u64,
    rows: u64,
    first: String,
}

fn compare(setup: &Setup, before: &Path, after: &Path) -> Result<Table> {
    let mut command = Command::new(&setup.tools.stackglass);
    command.args(["diff", "--all"]).args([before, after]).env("COLUMNS", "200").env("NO_COLOR", "1");
    let text = output(&mut command)?;
    // Below the rule under the headings.
    let (_, table) = text.split_once("===\n").context("a comparison has a table")?;
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(" → ")).collect();
    let marked = rows.iter().filter(|row| row.starts_with(" ! ")).count() as u64;
    let first = rows.first().context("a comparison has rows")?.to_string();
    Ok(Table { marked, rows: rows.len() as u64, first })
}

/// Pairs of equal runs, and pairs of which the second has a function that is 20 % slower.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    // A tenth of the time in a function, 20 % more of it: at 1 ms that would be two standard errors in 2 s.
    let record = |name: &str, workload: &[&str]| -> Result<PathBuf> {
        let file = setup.scratch(name);
        setup.recorded(&file, "200us", workload)?;
        Ok(file)
    };
    let (mut marked, mut rows) = (0, 0);
    for workload in SAME {
        for _ in 0..setup.either(8, 2) {
            let table =
                compare(setup, &record("same-a.glass", workload)?, &record("same-b.glass", workload)?)?;
            (marked, rows) = (marked + table.marked, rows + table.rows);
        }
    }
    let (mut found, mut tries) = (0, 0);
    for _ in 0..setup.either(12, 3) {
        let before = record("slower-a.glass", &["variants", "--work", "2000"])?;
        let after = record("slower-b.glass", &["variants", "--work", "2000", "--slower", "20"])?;
        let table = compare(setup, &before, &after)?;
        tries += 1;
        found += u64::from(table.first.starts_with(" ! ") && table.first.contains("variant_six"));
    }
    let note = format!("{marked} of {rows} rows, three programs");
    Ok(vec![
        Figure::must(
            "two runs of the same program: rows marked",
            Interval::share(marked, rows),
            Unit::Percent,
            Bound::AtMost(0.05),
        )
        .note(note),
        Figure::must(
            "one of ten functions 20 % slower: marked, and first",
            Interval::share(found, tries),
            Unit::Percent,
            Bound::AtLeast(1.0),
        )
        .note(format!("{found} of {tries} pairs of runs of about 4 s at 5 kHz, the function a tenth of it")),
    ])
}
