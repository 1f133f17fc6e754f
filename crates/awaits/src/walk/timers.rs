//! Timers that a task waits for, by themselves or as the limit of a `timeout`: when the first of them fires.

use super::{Place, Walk};
use crate::ends;
use crate::values::{Value, Values};
use stackglass_profile::Nanos;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint};

/// Deepest nesting of the time in a timer.
const DEEPEST: u32 = 6;
const SECOND: u64 = 1_000_000_000;

impl Walk<'_, '_> {
    /// A `timeout` with the future in it. Its timer may end it at any time.
    pub(super) fn timeout(&self, timeout: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        // In tokio 1.54 it is an `Option`.
        let delay = values.field(timeout, "delay").and_then(|delay| self.unfinished(delay));
        self.note_timer(delay);
        let mut frame = AwaitFrame {
            function: self.walker.name(timeout.type_id),
            point: AwaitPoint::Leaf,
            children: Vec::new(),
            is_race: false,
        };
        if let Some(value) = values.field(timeout, "value") {
            self.future(value, place, &mut frame.children);
        }
        out.push(frame);
    }

    /// Notes when a timer fires, if it is one.
    pub(super) fn note_timer(&self, timer: Option<Value>) {
        let values = self.values();
        let timer = timer.filter(|timer| values.name(*timer) == tokio::SLEEP);
        if let Some(deadline) = timer.and_then(|timer| deadline(values, timer)) {
            let first = self.fires_at.get().map_or(deadline, |known| known.min(deadline));
            self.fires_at.set(Some(first));
        }
    }
}

/// When a timer fires, by CLOCK_MONOTONIC.
fn deadline(values: &Values<'_>, timer: Value) -> Option<Nanos> {
    let instant = ends::find(values, timer, DEEPEST, &|name| name == tokio::INSTANT)?;
    let time = ends::find(values, instant, DEEPEST, &|name| name.ends_with("::Timespec"))?;
    let seconds = values.word(values.field(time, "tv_sec")?)?;
    let rest = u64::try_from(values.pages.number(values.field(time, "tv_nsec")?.address, 4)?).ok()?;
    let time = seconds.checked_mul(SECOND)?.checked_add(rest)?;
    (rest < SECOND).then_some(Nanos(time))
}
