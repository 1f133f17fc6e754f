//! One snapshot after the other: the cost of the command, the pause of the program, and the leaks that are found.
//!
//! A thread of the program reads the clock all the time. Its longest pause is given with and without the time in which it
//! waits for a CPU: the command and the program share the CPUs. Making a copy takes as long as fork(2), which the program
//! measures itself at its end.

use super::program::Program;
use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::{Run, Setup};
use crate::bench::statistics::{Interval, median};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// Largest memory of a command: bytes for each block or node.
const BYTES: f64 = 60.0;

/// A heap of known size, and the bounds of its snapshot.
struct Heap {
    name: &'static str,
    words: &'static [&'static str],
    /// The whole command, ms.
    whole: Option<f64>,
    /// The longest pause, ms.
    pause: Option<f64>,
    /// The same for each GB of resident memory.
    pause_of_gb: Option<f64>,
    /// `heap show`, ms.
    show: Option<f64>,
    rounds: usize,
}

const HEAPS: [Heap; 3] = [
    Heap {
        name: "1 M blocks",
        words: &["live-graph", "--work", "177000"],
        whole: Some(1500.0),
        pause: Some(5.0),
        pause_of_gb: None,
        show: None,
        rounds: 10,
    },
    Heap {
        name: "500 threads",
        words: &["live-graph", "--work", "1000", "--threads", "500"],
        whole: None,
        pause: Some(40.0),
        pause_of_gb: None,
        show: None,
        rounds: 8,
    },
    Heap {
        name: "10 M blocks",
        words: &["live-graph", "--work", "1770000"],
        whole: Some(12_000.0),
        pause: None,
        pause_of_gb: Some(20.0),
        show: Some(20_000.0),
        rounds: 4,
    },
];

/// All heaps.
pub fn measure(setup: &Setup, workloads: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for heap in &HEAPS[..setup.either(3, 2)] {
        let rounds = (0..setup.either(heap.rounds, 1))
            .map(|_| heap.round(setup, workloads))
            .collect::<Result<Vec<Round>>>()?;
        figures.extend(heap.figures(&rounds)?);
    }
    Ok(figures)
}

/// A program, a snapshot of it, and what the snapshot contains.
struct Round {
    resident: f64,
    taken: Run,
    shown: Value,
    show: Run,
    program: Value,
}

impl Round {
    /// A time that the program reports, ms.
    fn time(&self, key: &str) -> f64 {
        self.program[key].as_f64().unwrap_or(f64::NAN) / 1e3
    }
}

impl Heap {
    fn round(&self, setup: &Setup, workloads: &Path) -> Result<Round> {
        let file = setup.scratch("bench.heapsnapshot");
        let program = Program::start(setup, workloads, self.words)?;
        let resident = program.resident()?;
        let taken = program.take(setup, &file, &[])?;
        let program = program.end()?;
        let json = setup.scratch("bench-heap-show.json");
        let stackglass = setup.tools.stackglass.display().to_string();
        let words = [stackglass, "heap".into(), "show".into(), "--json".into(), file.display().to_string()];
        let show = setup.run_into(&words, &json)?;
        let shown = serde_json::from_slice(&std::fs::read(&json)?).context("heap show --json prints JSON")?;
        Ok(Round { resident, taken, shown, show, program })
    }

    fn figures(&self, rounds: &[Round]) -> Result<Vec<Figure>> {
        let name = self.name;
        let of = |number: &dyn Fn(&Round) -> f64| {
            Interval::bootstrap(&rounds.iter().map(number).collect::<Vec<f64>>(), median)
        };
        let figure = |what: &str, interval, unit, bound: Option<f64>| {
            let what = format!("{name}, {what}");
            match bound {
                Some(bound) => Figure::must(what, interval, unit, Bound::AtMost(bound)),
                None => Figure::told(what, interval, unit),
            }
        };
        let last = rounds.last().context("no rounds")?;
        let nodes = last.shown["nodes"].as_f64().context("heap show counts nodes")?;
        let mut figures = Vec::new();
        if self.whole.is_some() {
            let wall = of(&|round| round.taken.wall * 1e3);
            let bytes = of(&|round| round.taken.peak * 1e6 / nodes);
            figures.extend([
                figure("whole command", wall, Unit::Millis, self.whole).note(format!("{nodes:.0} nodes")),
                figure("memory of the command, bytes a block", bytes, Unit::Count, Some(BYTES))
                    .note("its largest resident memory, pages of files included"),
            ]);
        }
        let pause = of(&|round| round.time("longest_pause_us"));
        let resident = median(&rounds.iter().map(|round| round.resident).collect::<Vec<f64>>());
        let note = format!("{} rounds; the program has {resident:.2} GB of resident memory", rounds.len());
        let stop = of(&|round| round.time("longest_stop_us"));
        figures.extend([
            figure("longest pause of the program", pause, Unit::Millis, self.pause).note(note),
            figure("longest pause without waiting for a CPU", stop, Unit::Millis, None),
        ]);
        let fork = if let Some(bound) = self.pause_of_gb {
            let pause = of(&|round| round.time("longest_pause_us") / round.resident);
            let what = "longest pause for each GB of resident memory";
            figures.push(figure(what, pause, Unit::Millis, Some(bound)));
            let fork = of(&|round| round.time("fork_us") / round.resident);
            figure("a fork of the program by itself, for each GB", fork, Unit::Millis, None)
        } else {
            let fork = of(&|round| round.time("fork_us"));
            figure("a fork of the program by itself", fork, Unit::Millis, None)
        };
        figures.push(fork);
        if self.show.is_some() {
            let wall = of(&|round| round.show.wall * 1e3);
            let bytes = of(&|round| round.show.peak * 1e6 / nodes);
            figures.extend([
                figure("heap show", wall, Unit::Millis, self.show),
                figure("memory of heap show, bytes a node", bytes, Unit::Count, Some(BYTES)),
            ]);
        }
        let leaked = last.program["leaked"].as_f64().context("the program counts leaked blocks")?;
        let found = last.shown["unreachable"]["count"].as_f64().context("heap show counts leaks")?;
        let what = format!("{name}, leaked blocks that are reported");
        let share = Interval::exact(found / leaked);
        figures.push(
            Figure::must(what, share, Unit::Percent, Bound::Within(0.99, 1.0))
                .note(format!("{found:.0} of {leaked:.0}")),
        );
        Ok(figures)
    }
}
