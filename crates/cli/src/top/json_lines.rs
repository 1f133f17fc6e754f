//! `top --json`: the figures of each second as a JSON object on a line of its own, as documented in `docs/json.md`.

use super::child::ChildProgram;
use super::figures::{Figures, REFRESH_INTERVAL};
use super::live_view::{ExitReason, SIGTSTP};
use super::model::{Model, Row};
use serde::Serialize;
use stackglass_collect::session::signals::Signals;
use stackglass_report::json;
use std::io::{self, Write};
use std::time::Duration;

/// Longest wait for a signal between two drains of the streams.
const PAUSE: Duration = Duration::from_millis(50);

/// Writes objects until the process ends, a signal arrives, or nobody reads them any more. Signals are passed on to
/// `child`.
pub(super) fn run(
    figures: &mut Figures,
    pid: u32,
    signals: &Signals,
    child: Option<&ChildProgram>,
) -> ExitReason {
    loop {
        figures.drain();
        let stopped = figures.stopped();
        if figures.age() >= REFRESH_INTERVAL || stopped.is_some() {
            figures.refresh();
            if print(&Second::from_model(pid, &figures.model)).is_err() {
                return ExitReason::Asked;
            }
        }
        if let Some(why) = stopped {
            return ExitReason::Stopped(why);
        }
        let Some(signal) = signals.next(PAUSE) else { continue };
        if signal.number == SIGTSTP {
            figures.interrupt_for(|| signals.stop_here());
        } else if let Some(why) = ExitReason::by_signal(signal, signals, child) {
            return why;
        }
    }
}

/// The figures of a second.
#[derive(Serialize)]
struct Second<'a> {
    pid: u32,
    wall: u64,
    cpu: u64,
    threads: Vec<Thread<'a>>,
    functions: Vec<Function<'a>>,
    lines: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Thread<'a> {
    tid: u32,
    name: String,
    cpu: u64,
    ready: u64,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct Function<'a> {
    function: &'a str,
    own: u64,
    total: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    function: &'a str,
    file: &'a str,
    line: Option<u64>,
    own: u64,
}

impl Second<'_> {
    fn from_model(pid: u32, model: &Model) -> Second<'_> {
        let threads = model.threads().into_iter().map(|thread| Thread {
            tid: thread.tid,
            name: thread.name,
            cpu: thread.awake,
            ready: thread.waiting,
            function: thread.hottest.map(|id| model.name(id)),
        });
        let functions = model.functions(None).into_iter().map(|row| Function {
            function: model.name(row.id),
            own: row.own,
            total: row.total,
        });
        Second {
            pid,
            wall: model.wall(),
            cpu: model.awake(),
            threads: threads.collect(),
            functions: functions.collect(),
            lines: model.lines(None).iter().filter_map(|row| Line::from_row(model, row)).collect(),
        }
    }
}

impl Line<'_> {
    fn from_row<'a>(model: &'a Model, row: &Row) -> Option<Line<'a>> {
        let line = model.line(row.id)?;
        let (file, number) = line.at.rsplit_once(':')?;
        Some(Line { function: model.name(line.function), file, line: number.parse().ok(), own: row.own })
    }
}

fn print(second: &Second<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    json::write_line(second, &mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::with_lines;
    use super::*;

    #[test]
    fn the_hottest_rows_come_first() {
        let model = with_lines(&[("cold", "a.rs:2", 10), ("hot", "b.rs:7", 90)]);
        let mut out = Vec::new();
        json::write_line(&Second::from_model(12, &model), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap().trim_end(),
            r#"{"pid":12,"wall":200,"cpu":100,"threads":[{"tid":77,"name":"slower","cpu":100,"ready":0,"function":"hot"},{"tid":78,"name":"other","cpu":0,"ready":0,"function":null}],"functions":[{"function":"hot","own":90,"total":90},{"function":"cold","own":10,"total":10}],"lines":[{"function":"hot","file":"b.rs","line":7,"own":90},{"function":"cold","file":"a.rs","line":2,"own":10}]}"#
        );
    }
}
