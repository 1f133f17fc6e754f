//! Await stacks of programs whose tasks wait at known places: the program `awaits`, optimized, with types.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::run::{cargo, output, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Tasks of the large program.
const MANY: usize = 20_000;

/// A program, until it is dropped.
struct Program(Child);

impl Program {
    fn start(setup: &Setup, arguments: &[&str]) -> Result<Program> {
        let mut command = Command::new(&setup.tools.awaits);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the output is no pipe")?;
        let program = Program(child);
        let mut lines = BufReader::new(output).lines();
        lines.find(|line| line.as_ref().is_ok_and(|line| line == "READY")).context("it did not start")??;
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Time of the whole command, how long the program stands still, and the number of tasks in the report.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let many = MANY.to_string();
    let small: &[&str] = &["shapes"];
    for (what, arguments) in [("40 tasks of all shapes", small), ("20 000 tasks", &["many", &many])] {
        let program = Program::start(setup, arguments)?;
        let pid = program.0.id().to_string();
        let stackglass = setup.tools.stackglass.display().to_string();
        let words = [stackglass, "tasks".into(), pid, "--json".into()];
        let (mut walls, mut pauses, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setup.either(11, 3) {
            let output = setup.scratch("tasks.json");
            walls.push(setup.run_into(&words, &output)?.wall * 1e3);
            let tasks: Value = serde_json::from_slice(&std::fs::read(&output)?)?;
            pauses.push(tasks["pause"].as_f64().context("no pause")? * 1e-6);
            counts.push(tasks["tasks"].as_f64().context("no tasks")?);
        }
        let pause = if arguments == small { 10.0 } else { 50.0 };
        let interval = |values: &[f64]| Interval::bootstrap(values, median);
        let whole = format!("{what}: the whole command");
        figures.push(match arguments == small {
            true => Figure::must(whole, interval(&walls), Unit::Millis, Bound::AtMost(500.0)),
            false => Figure::told(whole, interval(&walls), Unit::Millis),
        });
        let still = format!("{what}: the program stands still");
        figures.push(Figure::must(still, interval(&pauses), Unit::Millis, Bound::AtMost(pause)));
        figures.push(Figure::told(
            format!("{what}: tasks in the report"),
            Interval::range(&counts),
            Unit::Count,
        ));
        figures.extend(parts(setup, what, program.0.id(), arguments == small)?);
    }
    Ok(figures)
}

/// The time in which types are read, and that of an answer when they are known.
fn parts(setup: &Setup, what: &str, pid: u32, is_small: bool) -> Result<Vec<Figure>> {
    let build = ["build", "--quiet", "--release", "-p", "stackglass-inspect", "--example", "await_speed"];
    if !succeeds(&mut cargo(&build))? {
        bail!("the example await_speed does not build");
    }
    let mut command = Command::new(target_folder().join("release/examples/await_speed"));
    let found: Value =
        serde_json::from_str(&output(command.arg(pid.to_string()).arg(setup.either("15", "3")))?)?;
    let times = |key: &str| -> Vec<f64> {
        let times = found[key].as_array().map(Vec::as_slice).unwrap_or_default();
        times.iter().filter_map(Value::as_f64).collect()
    };
    let megabytes = found["debug_info"].as_f64().context("no size of types")? / 1e6;
    let tasks = found["tasks"].as_f64().context("no number of tasks")?;
    if is_small {
        let of_16: Vec<f64> = times("index").iter().map(|time| time / megabytes * 16.0).collect();
        let figure = Figure::must(
            "types are read, for 16 MB of .debug_info",
            Interval::bootstrap(&of_16, median),
            Unit::Millis,
            Bound::AtMost(150.0),
        );
        return Ok(vec![figure.note(format!("the program has {megabytes:.0} MB"))]);
    }
    let each: Vec<f64> = times("warm").iter().map(|time| time / tasks * 1e3).collect();
    Ok(vec![
        Figure::must(
            format!("{what}: an answer with known types, µs a task"),
            Interval::bootstrap(&each, median),
            Unit::Count,
            Bound::AtMost(10.0),
        )
        .note("copy, list, walk, holders and deadlocks together"),
    ])
}
