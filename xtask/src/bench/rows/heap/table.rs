//! Memory of the table of live blocks: the resident memory of a program with many small blocks, with and without it.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use anyhow::Result;
use std::path::Path;

/// Blocks of the large program.
const MANY: u64 = 10_000_000;
/// Largest memory that does not depend on the number of blocks, MB.
const FIXED: f64 = 2.0;
/// Largest share of the live bytes.
const SHARE: f64 = 0.3;

/// What is fixed, and what grows with the heap.
pub fn measure(setup: &Setup, workloads: &Path) -> Result<Vec<Figure>> {
    let added = |workload: &str, blocks: u64| -> Result<Vec<f64>> {
        let count = blocks.to_string();
        let program = [&workloads.display().to_string(), workload, "--work", &count].map(str::to_owned);
        let recorded = ["run", "--allocs", "--"].map(str::to_owned);
        let recorded = [&[setup.tools.stackglass.display().to_string()], &recorded[..], &program].concat();
        (0..setup.either(3, 1))
            .map(|_| {
                let resident = |words: &[String]| setup.run(words)?.number("rss_kib");
                Ok((resident(&recorded)? - resident(&program)?) * 1024e-6)
            })
            .collect()
    };
    let mut figures = Vec::new();
    let few = added("blocks-of-32", 1)?;
    let fixed = median(&few);
    figures.push(Figure::must(
        "table of live blocks, fixed memory",
        Interval::range(&few),
        Unit::Megabytes,
        Bound::AtMost(FIXED),
    ));
    for (workload, size, note) in [
        ("blocks-of-32", 32.0, "glibc takes 48 bytes for each block"),
        ("blocks-of-24", 32.0, "24 bytes and a head of 8"),
    ] {
        let shares: Vec<f64> =
            added(workload, MANY)?.iter().map(|added| (added - fixed) * 1e6 / (MANY as f64 * size)).collect();
        let (what, bound) = match workload {
            "blocks-of-32" => ("table of live blocks ÷ live bytes, 32 bytes asked for", None),
            _ => ("table of live blocks ÷ live bytes, blocks that take 32 bytes", Some(SHARE)),
        };
        let interval = Interval::range(&shares);
        let figure = match bound {
            Some(bound) => Figure::must(what, interval, Unit::Percent, Bound::AtMost(bound)),
            None => Figure::told(what, interval, Unit::Percent),
        };
        figures.push(figure.note(note));
    }
    Ok(figures)
}
