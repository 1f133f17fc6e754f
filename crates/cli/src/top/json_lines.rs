//! `top --json`: the figures of each second as a JSON object on a line of its own, as documented in `docs/json.md`.

use super::child::ChildProgram;
use super::figures::{Figures, REFRESH_INTERVAL};
use super::live_view::{ExitReason, SIGTSTP};
use super::model::Model;
use stackglass_collect::session::signals::Signals;
use stackglass_report::json::Object;
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
            if write_line(&object(pid, &figures.model)).is_err() {
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

/// The figures of the model.
fn object(pid: u32, model: &Model) -> Object {
    let threads = model.threads().into_iter().map(|thread| {
        Object::new()
            .number("tid", u64::from(thread.tid))
            .text("name", &thread.name)
            .number("cpu", thread.awake)
            .number("ready", thread.waiting)
            .text_or_null("function", thread.hottest.map(|id| model.name(id)))
    });
    let functions = model.functions(None).into_iter().map(|row| {
        Object::new().text("function", model.name(row.id)).number("own", row.own).number("total", row.total)
    });
    let lines = model.lines(None).into_iter().filter_map(|row| {
        let line = model.line(row.id)?;
        let (file, number) = line.at.rsplit_once(':')?;
        let object = Object::new().text("function", model.name(line.function)).text("file", file);
        Some(object.number_or_null("line", number.parse().ok()).number("own", row.own))
    });
    Object::new()
        .number("pid", u64::from(pid))
        .number("wall", model.wall())
        .number("cpu", model.awake())
        .list("threads", threads)
        .list("functions", functions)
        .list("lines", lines)
}

fn write_line(object: &Object) -> io::Result<()> {
    // Line breaks in texts are escaped; the others only separate rows.
    let text = object.clone().end().replace('\n', "");
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::with_lines;
    use super::*;

    #[test]
    fn the_hottest_rows_come_first() {
        let model = with_lines(&[("cold", "a.rs:2", 10), ("hot", "b.rs:7", 90)]);
        let text = object(12, &model).end().replace('\n', "");
        assert_eq!(
            text,
            r#"{"pid":12,"wall":200,"cpu":100,"threads":[{"tid":77,"name":"slower","cpu":100,"ready":0,"function":"hot"},{"tid":78,"name":"other","cpu":0,"ready":0,"function":null}],"functions":[{"function":"hot","own":90,"total":90},{"function":"cold","own":10,"total":10}],"lines":[{"function":"hot","file":"b.rs","line":7,"own":90},{"function":"cold","file":"a.rs","line":2,"own":10}]}"#
        );
    }
}
