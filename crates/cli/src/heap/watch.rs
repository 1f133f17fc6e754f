//! `stackglass heap watch PID`: what grows on the heap of a running process, and what holds it.

use super::table_flags::TableFlags;
use super::take::take_graph;
use super::watched::{Copied, Copies};
use crate::copy_flags::CopyFlags;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::values::{copies, positive_duration, process_id};
use clap::Args;
use stackglass_collect::attached::ends;
use stackglass_collect::session::signals::Signals;
use stackglass_heap_report::answers::watch::Watch;
use stackglass_heap_report::reports;
use stackglass_inspect::heap::TakeOptions;
use stackglass_procfs::status::process_of;
use stackglass_procfs::{ImageKey, threads};
use stackglass_report::numbers::{bytes_text, counted, duration_text, pause_text};
use std::io::{BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  stackglass heap watch 1234               every 10 s, until Ctrl-C
  stackglass heap watch 1234 --every 1min --duration 1h
  stackglass heap watch $(pidof server) --duration 30s --json | jq '.types[0]'

The process is copied now and then, as by `heap take`. Only sums of a copy are
kept, and no file is left. Ctrl-C ends the watch and prints what has grown: by
type, by size where the type is unknown, and by the path that holds it.

What grew in each step from copy to copy is a likely leak, and so is what
nothing leads to, if it never shrank. A table that has doubled, or a cache that
has become full, grew in some steps. At most nine copies are compared: steps
become longer the longer the watch takes.

Copies are farther apart than asked for if the process would stand still for
more than 1 % of the time.";

/// Show what grows on the heap of a running process, and what holds it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// Time from copy to copy
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    every: Duration,

    /// Stop after this time [default: until Ctrl-C or the end of the process]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    duration: Option<Duration>,

    /// Stop after so many copies
    #[arg(long, value_name = "N", value_parser = copies)]
    copies: Option<u32>,

    #[command(flatten)]
    copy: CopyFlags,

    #[command(flatten)]
    table: TableFlags<10>,
}

/// The process runs for at least so many times as long as it was held up.
const PAUSED_PART: u32 = 100;
/// Copies that may fail one after the other, while the process lives.
const MOST_FAILURES: u32 = 3;
/// Longest time of a watch: a thousand days.
const LONGEST: Duration = Duration::from_secs(86_400_000);
/// Longest time between two looks at the process.
const LOOK: Duration = Duration::from_millis(100);

/// Why no more copies are taken.
enum End {
    Asked,
    Elapsed,
    Taken,
    Ended,
    Executed,
    Failed(String),
}

impl End {
    /// The word in JSON.
    fn word(&self) -> &'static str {
        match self {
            End::Asked => "asked",
            End::Elapsed => "duration",
            End::Taken => "copies",
            End::Ended => "ended",
            End::Executed => "executed",
            End::Failed(_) => "failed",
        }
    }

    /// What to tell the user, who knows of the first three.
    fn line(&self, pid: u32) -> Option<String> {
        match self {
            End::Asked | End::Elapsed | End::Taken => None,
            End::Ended => Some(format!("process {pid} has ended")),
            End::Executed => Some(format!("process {pid} runs another program now")),
            End::Failed(line) => Some(line.clone()),
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = process_of(flags.pid);
    let name = threads::name(pid, pid).unwrap_or_default();
    let signals = Signals::block_as_onlooker()
        .map_err(|error| Failure::new(format!("cannot receive signals: {error}")))?;
    let options = TakeOptions {
        stop: flags.copy.stop,
        interrupt_calls: flags.copy.interrupt_calls,
        ..TakeOptions::default()
    };
    let mut watching = Watching {
        pid,
        image: ImageKey::read(pid),
        every: flags.every,
        copies: Copies::start(move || take_graph(pid, &options)),
        signals,
        watch: Watch::default(),
        begin: Instant::now(),
        is_asked: false,
        is_stretched: false,
    };
    let end = watching.run(flags.duration, flags.copies);
    // A signal that comes now ends this process.
    watching.signals.finish();
    let copies = watching.watch.copies().len();
    if copies < 2 {
        let line = match (end.line(pid), copies) {
            (Some(line), 0) => line,
            (Some(line), _) => format!("{line}: one copy was taken, and growth needs two"),
            (None, _) => "growth needs two copies: let it run for longer".to_owned(),
        };
        return Err(Failure::new(line));
    }
    if let Some(line) = end.line(pid) {
        message::print(&line);
    }
    let grown = watching.watch.grown();
    let mut out = BufWriter::new(std::io::stdout().lock());
    if flags.table.json {
        reports::write_watch_json(pid, end.word(), &watching.watch, &grown, &mut out)?;
    } else {
        flags.table.text(format!("{name} ({pid})")).watch(&watching.watch, &grown, &mut out)?;
    }
    out.flush()?;
    Ok(0)
}

struct Watching {
    pid: u32,
    image: Option<ImageKey>,
    every: Duration,
    copies: Copies,
    signals: Signals,
    watch: Watch,
    begin: Instant,
    /// The user has asked for the end.
    is_asked: bool,
    /// It was said that copies are farther apart than asked for.
    is_stretched: bool,
}

impl Watching {
    fn run(&mut self, duration: Option<Duration>, most: Option<u32>) -> End {
        let mut failures = 0;
        let mut gap = Duration::ZERO;
        loop {
            let started = Instant::now();
            match self.copy() {
                None => return End::Asked,
                Some(Ok(copied)) => {
                    failures = 0;
                    gap = copied.copy.pause.saturating_mul(PAUSED_PART).min(LONGEST);
                    self.add(copied, started);
                }
                Some(Err(line)) => {
                    if self.watch.copies().is_empty() {
                        return End::Failed(line);
                    }
                    if let Some(end) = self.gone() {
                        return end;
                    }
                    failures += 1;
                    if failures == MOST_FAILURES {
                        return End::Failed(line);
                    }
                    message::print(&format!("a copy is missing: {line}"));
                }
            }
            let copies = self.watch.copies().len();
            let is_enough = copies > 1;
            if is_enough && self.is_asked {
                return End::Asked;
            }
            if most.is_some_and(|most| copies >= most as usize) {
                return End::Taken;
            }
            let stop = duration.map(|duration| self.begin + duration.min(LONGEST));
            if is_enough && stop.is_some_and(|stop| Instant::now() >= stop) {
                return End::Elapsed;
            }
            self.say_if_stretched(gap);
            if let Some(end) = self.wait(next_copy(started, gap, self.every, stop), started + gap) {
                return end;
            }
        }
    }

    /// Waits until `next`, or until `earliest` if the user asks for the end before there are two copies.
    fn wait(&mut self, mut next: Instant, earliest: Instant) -> Option<End> {
        loop {
            if self.is_asked {
                next = next.min(earliest);
            }
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            if self.has_signal(left.min(LOOK)) && (self.is_asked || self.watch.copies().len() > 1) {
                return Some(End::Asked);
            } else if let Some(end) = self.gone() {
                return Some(end);
            }
        }
    }

    /// Waits for a signal that ends the watch. The first one only asks for the end.
    fn has_signal(&mut self, patience: Duration) -> bool {
        let Some(signal) = self.signals.next(patience) else { return false };
        if signal.number == SIGTSTP {
            self.signals.stop_here();
        }
        ends(signal.number)
    }

    /// Takes a copy; `None` if the user does not wait for it.
    fn copy(&mut self) -> Option<Result<Copied, String>> {
        self.copies.ask();
        loop {
            if let Some(answer) = self.copies.answer() {
                return Some(answer);
            }
            if self.has_signal(LOOK / 5) {
                // With two copies, the answer is ready.
                if self.is_asked || self.watch.copies().len() > 1 {
                    return None;
                }
                self.is_asked = true;
            }
        }
    }

    fn add(&mut self, copied: Copied, started: Instant) {
        let is_first = self.watch.copies().is_empty();
        if is_first {
            self.begin = started;
            copied.remarks.iter().for_each(|remark| message::print(remark));
        }
        let mut copy = copied.copy;
        copy.at = started - self.begin;
        self.watch.add(copy, copied.sums);
        let (Some(first), Some(last)) = (self.watch.copies().first(), self.watch.copies().last()) else {
            return;
        };
        if std::io::stderr().is_terminal() {
            let growth = match last.all.self_size.checked_sub(first.all.self_size) {
                _ if is_first => String::new(),
                Some(more) => format!(", +{}", bytes_text(more)),
                None => format!(", -{}", bytes_text(first.all.self_size - last.all.self_size)),
            };
            message::print(&format!(
                "{:.1} s: {} in {}{growth}; {}",
                last.at.as_secs_f64(),
                bytes_text(last.all.self_size),
                counted(last.all.count, "block", "blocks"),
                pause_text(nanos(last.pause)),
            ));
        }
    }

    /// Why no further copy can be compared, if so.
    fn gone(&self) -> Option<End> {
        match ImageKey::read(self.pid) {
            None => Some(End::Ended),
            Some(_) if !stackglass_procfs::process::is_alive(self.pid) => Some(End::Ended),
            now if self.image.is_some() && now != self.image => Some(End::Executed),
            _ => None,
        }
    }

    fn say_if_stretched(&mut self, gap: Duration) {
        if gap > self.every && !self.is_stretched {
            self.is_stretched = true;
            message::print(&format!(
                "copies are at least {} apart, so that the process stands still for less than 1 % of the time",
                duration_text(nanos(gap))
            ));
        }
    }
}

/// When the next copy is taken: after this time, at the end of the watch at the latest, and never sooner than after the gap.
fn next_copy(started: Instant, gap: Duration, every: Duration, stop: Option<Instant>) -> Instant {
    let wanted = started + every.min(LONGEST);
    (started + gap).max(stop.map_or(wanted, |stop| stop.min(wanted)))
}

/// The number of SIGTSTP (signal(7)).
const SIGTSTP: i32 = 20;

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_far_enough_apart() {
        let started = Instant::now();
        let seconds = Duration::from_secs;
        let after = |gap: u64, every: u64, stop: Option<u64>| {
            next_copy(started, seconds(gap), seconds(every), stop.map(|stop| started + seconds(stop)))
                - started
        };
        assert_eq!(after(1, 10, None), seconds(10));
        assert_eq!(after(30, 10, None), seconds(30));
        // The last copy is that of the end, unless the process would be held up too soon.
        assert_eq!(after(1, 10, Some(4)), seconds(4));
        assert_eq!(after(6, 10, Some(4)), seconds(6));
        assert_eq!(after(0, u64::MAX, None), LONGEST);
    }
}
