//! The blocks that are found in unprepared programs, against those that an independent recorder counts: the project's own tests,
//! whose figures are taken over. A test fails if any block or usable size differs.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::statistics::Interval;
use crate::run::{cargo, output};
use anyhow::Result;

/// The tests and their programs.
const TESTS: [(&str, &str); 3] = [
    ("walks::c_with_many_arenas", "C with many arenas"),
    ("walks::rust_with_four_threads", "Rust with four threads"),
    ("walks::python_with_malloc", "python3 with PYTHONMALLOC=malloc"),
];

/// One row for each program.
pub fn measure() -> Result<Vec<Figure>> {
    let row = |(test, program): &(&str, &str)| {
        let what = format!("unprepared: {program}, blocks with their sizes that are found");
        let arguments = [
            "test",
            "--quiet",
            "-p",
            "stackglass-heapgraph",
            "--test",
            "glibc",
            "--",
            "--nocapture",
            "--exact",
        ];
        let text = output(cargo(&arguments).arg(test))?;
        let figures = text.lines().find_map(|line| line.split_once("same blocks: "));
        Ok(match figures {
            Some((_, note)) => {
                Figure::must(what, Interval::exact(1.0), Unit::Percent, Bound::Within(1.0, 1.0)).note(note)
            }
            None => Figure::missing(what, format!("the test {test} was skipped")),
        })
    };
    TESTS.iter().map(row).collect()
}
