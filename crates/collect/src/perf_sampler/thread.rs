//! One thread: its stacks, and the time that each stands for.
//!
//! Stacks are collected and *settled* together. A stack in the program's own code stands for one period of CPU time. The
//! rest of the thread's clock was spent in the kernel, and is split among the stacks taken there. Hits are never scaled
//! to the clock as a whole: if the kernel cannot be sampled, its share would fall on the program's own code. Measured
//! with programs that keep their own account, a hit in user code is worth 0.93 to 1.08 periods under all conditions
//! tried, while shares of all hits are wrong by up to a third.

use super::alike::{Alike, Owed};
use super::burst_start::BurstStart;
use super::interval::Interval;
use super::placement::place;
use super::sleeps::{Sleeps, Slept};
use super::stack::Stack;
use super::time::{Phase, SwitchCost, ThreadTime};
use stackglass_procfs::threads::Files;
use stackglass_profile::{Cut, Nanos, Recorder, Sample, StackId, State, ThreadNumber};
use stackglass_wire::{ThreadId, ThreadName, cut};

/// A stack that was taken while the thread ran.
#[derive(Clone, Copy, Debug)]
struct Hit {
    stack: Stack,
    /// The CPU time that it stands for was spent in this interval.
    interval: Interval,
    /// The thread ran its own code; otherwise it was in the kernel.
    in_user_code: bool,
    /// What the thread had run since the last hit, ns.
    period: u64,
    /// The stack was taken in the thread's own code, shortly after the thread got a CPU.
    at_start: bool,
}

/// One thread of one image.
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// Number within its image.
    pub number: ThreadId,
    pub name: ThreadName,
    pub began: u64,
    pub time: ThreadTime,
    burst_began: u64,
    /// CPU time that is not given to stacks was spent after this moment, but for a period.
    unsettled_since: u64,
    /// When the current phase began.
    phase_began: u64,
    /// When it was first ready or running after it was settled.
    awake_since: Option<u64>,
    /// `None` where whole CPUs are sampled: their timers are not set when a thread gets a CPU.
    burst_start: Option<BurstStart>,
    sleeps: Sleeps,
    pub files: Files,
    /// It has run since it was last settled.
    pub moved: bool,
    /// It is in the recording.
    pub announced: bool,
    /// Copies of its stack beyond what samples contain, if the stack is deep.
    pub deep: Option<Box<stackglass_perf::deep_stack::DeepStack>>,
    hits: Vec<Hit>,
    last_awake: Option<Stack>,
}

/// Where the settled samples of one thread go.
pub(super) struct Sink<'a> {
    pub recorder: &'a mut Recorder,
    pub thread: ThreadNumber,
    /// A stack without frames.
    pub no_stack: StackId,
    /// Time in the kernel is not sampled.
    pub user_only: bool,
    /// Each moment of CPU time has the same chance of a stack, also in short lives: the threads that run the same program.
    pub alike: Option<&'a mut Alike>,
    /// Samples were lost in this recording.
    pub lost: bool,
    /// Mean time between two drains, ns.
    pub between_drains: u64,
}

impl Sink<'_> {
    fn add(&mut self, stack: Stack, interval: Interval, time: u64, state: State, hits: u32) {
        let cut = (stack.cut != 0).then_some(Cut(stack.cut));
        let stack = stack.id;
        let (thread, clock, spread) = (self.thread, Nanos(interval.to), Nanos(interval.spread(time)));
        let time = Nanos(time);
        self.recorder.add_sample(Sample { stack, thread, task: 0, clock, state, cut, hits, time, spread });
    }
}

impl Thread {
    /// A thread that begins at `at`, sampled by events `of_cpus` or by inherited ones.
    pub(super) fn new(
        (pid, tid): (u32, u32),
        number: ThreadId,
        at: u64,
        phase: Phase,
        of_cpus: bool,
    ) -> Thread {
        Thread {
            pid,
            tid,
            number,
            name: [0; 16],
            began: at,
            time: ThreadTime::new(at, phase),
            burst_began: at,
            unsettled_since: at,
            phase_began: at,
            awake_since: (phase != Phase::Asleep).then_some(at),
            burst_start: (!of_cpus).then(BurstStart::default),
            sleeps: Sleeps::of_thread(at),
            files: Files::new(pid, tid),
            moved: false,
            announced: false,
            deep: None,
            hits: Vec::new(),
            last_awake: None,
        }
    }

    /// Adds a stack that was taken while the thread ran.
    pub(super) fn hit(&mut self, stack: Stack, at: u64, in_user_code: bool, period: u64) {
        let at_start = in_user_code
            && self.time.phase() == Phase::Running
            && self
                .burst_start
                .as_mut()
                .is_some_and(|start| start.add_hit(at.saturating_sub(self.burst_began), period));
        let interval = Interval { from: self.unsettled_since.min(at), to: at };
        self.unsettled_since = at;
        self.hits.push(Hit { stack, interval, in_user_code, period, at_start });
    }

    /// Enters another phase.
    pub(super) fn enter(&mut self, phase: Phase, at: u64) {
        if self.time.phase() == Phase::Asleep {
            self.sleeps.end(at);
        }
        match (self.time.phase(), phase) {
            (Phase::Running, Phase::Running) => {}
            (Phase::Running, _) => {
                self.burst_start
                    .iter_mut()
                    .for_each(|start| start.add_burst(at.saturating_sub(self.burst_began)));
            }
            (_, Phase::Running) => self.burst_began = at,
            _ => {}
        }
        if phase == Phase::Running && at.saturating_sub(self.phase_began) > PAUSE {
            self.unsettled_since = self.unsettled_since.max(at);
        }
        if phase != self.time.phase() {
            self.phase_began = at;
        }
        if phase != Phase::Asleep {
            self.awake_since.get_or_insert(at);
        }
        self.time.enter(phase, at);
        self.sleeps.begin(self.time.until());
    }

    /// Records were lost: what it did after the moment `certain` is not known.
    pub(super) fn doubt(&mut self, certain: u64) {
        self.time.doubt(certain);
        self.sleeps.doubt(self.time.until());
    }

    /// The thread was found to sleep on this stack.
    pub(super) fn asleep_on(&mut self, stack: Stack, at: u64) {
        self.sleeps.read(stack, at);
    }

    /// Whether stacks are unsettled.
    pub(super) fn has_hits(&self) -> bool {
        !self.hits.is_empty()
    }

    /// Whether stacks or CPU time may be unsettled.
    pub(super) fn has_moved(&self) -> bool {
        self.moved || !self.hits.is_empty()
    }

    /// Forgets all stacks and all time: the recording restarts at `at`.
    pub(super) fn begin_anew(&mut self, at: u64, cost: &SwitchCost) {
        self.time.begin_anew(at, cost);
        self.hits.clear();
        self.sleeps = Sleeps::of_thread(at);
        self.unsettled_since = at;
        self.awake_since = (self.time.phase() != Phase::Asleep).then_some(at);
        self.last_awake = None;
    }

    /// Gives all time up to `at` to stacks. Time without a stack is kept, unless this is the `last` settling.
    pub(super) fn settle(&mut self, at: u64, last: bool, cost: &SwitchCost, sink: &mut Sink<'_>) {
        self.time.advance(at);
        let at = self.time.until();
        let awake = self.sleeps.shorten(self.time.awake_in_sleep());
        self.time.shorten_sleep(awake);
        self.settle_awake(at, last, cost, sink);
        self.settle_waited(at, last, sink);
        self.settle_asleep(at, last, sink);
        self.awake_since = (self.time.phase() != Phase::Asleep).then_some(at);
        self.moved = false;
    }

    fn settle_awake(&mut self, at: u64, last: bool, cost: &SwitchCost, sink: &mut Sink<'_>) {
        let pending = self.time.pending(cost).max(0) as u64;
        if let Some(start) = &mut self.burst_start {
            self.hits.retain(|hit| !hit.at_start || !start.is_surplus(hit.period));
        }
        self.hits.iter_mut().for_each(|hit| hit.at_start = false);
        let ran = self.time.clock(cost);
        let is_short = match self.hits.last() {
            Some(hit) => ran < SHORT_LIFE * hit.period,
            None => self.last_awake.is_none(),
        };
        if last && sink.alike.is_some() && is_short {
            return self.settle_short_life(at, pending, sink);
        }
        // Stacks wait until the thread's clock has reached what they stand for.
        let waiting = if last { Vec::new() } else { self.hits.split_off(covered(pending, &self.hits)) };
        let (times, rest) = shares(pending, &self.hits, last);
        let mut parts: Vec<Part> = self
            .hits
            .iter()
            .zip(times)
            .map(|(hit, time)| Part { stack: hit.stack, interval: hit.interval, time, hits: 1 })
            .collect();
        self.last_awake = parts.last().map(|part| part.stack).or(self.last_awake);
        let period = self.hits.last().map_or(1_000_000, |hit| hit.period);
        self.hits = waiting;
        parts.extend(self.part_without_hit(rest, (at, last), period, ran, cost, sink));
        let wanted: Vec<(Interval, u64)> = parts.iter().map(|part| (part.interval, part.time)).collect();
        for (part, interval) in parts.iter().zip(place(&wanted)) {
            sink.add(part.stack, interval, part.time, State::Awake, part.hits);
        }
        self.time.give(parts.iter().map(|part| part.time).sum());
    }

    /// The stack of CPU time that no hit stands for, if it is given to one.
    fn part_without_hit(
        &mut self,
        rest: u64,
        (at, last): (u64, bool),
        period: u64,
        ran: u64,
        cost: &SwitchCost,
        sink: &Sink<'_>,
    ) -> Option<Part> {
        if !self.hits.is_empty() {
            return None;
        }
        // If a thread ran for a few periods only, the time may be its own code's or the kernel's.
        let in_kernel = sink.user_only && rest > 4 * period && ran > 20 * period;
        let stack = match self.last_awake {
            _ if in_kernel => Stack { id: sink.no_stack, cut: cut::IN_KERNEL },
            Some(stack) if last && rest <= period => stack,
            // Threads that sleep often have time that is between samples, however few were lost.
            _ if last && sink.lost && ran > SHORT_LIFE * period && self.time.mean_run(cost) > period => {
                Stack { id: sink.no_stack, cut: cut::LOST }
            }
            _ if last => Stack { id: sink.no_stack, cut: cut::SHORT },
            _ => return None,
        };
        // The last period may still belong to the program's own code.
        let time = if last { rest } else { rest - period };
        if time == 0 {
            return None;
        }
        let interval = Interval { from: self.unsettled_since.min(at), to: at };
        self.unsettled_since = at;
        Some(Part { stack, interval, time, hits: 0 })
    }

    /// Gives all CPU time of a thread that has ended after a few periods. Its stacks get what they stand for, if it ran as much. Time
    /// without a stack, and stacks without time, are balanced among all threads of the program that ended as soon.
    fn settle_short_life(&mut self, at: u64, pending: u64, sink: &mut Sink<'_>) {
        let all: u64 = self.hits.iter().map(|hit| hit.period).sum();
        let mut left = pending;
        for hit in std::mem::take(&mut self.hits) {
            let time = match all > pending {
                true => (u128::from(hit.period) * u128::from(pending) / u128::from(all)) as u64,
                false => hit.period,
            };
            left -= time;
            sink.add(hit.stack, hit.interval, time, State::Awake, 1);
            self.last_awake = Some(hit.stack);
            if let Some(alike) = &mut sink.alike {
                alike.offer(hit.stack, hit.period - time);
            }
        }
        if let Some(alike) = &mut sink.alike
            && left > 0
        {
            let interval = Interval { from: self.began.min(at), to: at };
            alike.owe(Owed { thread: sink.thread, interval, time: left, no_stack: sink.no_stack });
        }
        self.time.give(pending);
    }

    fn settle_waited(&mut self, at: u64, last: bool, sink: &mut Sink<'_>) {
        let stack = self.last_awake.or(self.sleeps.last());
        if let Some(stack) = stack.or(last.then_some(Stack { id: sink.no_stack, cut: cut::SHORT })) {
            let waited = self.time.take_waited(last);
            if waited > 0 {
                // A wait after a sleep counts as sleep until the thread runs.
                let from = self.awake_since.unwrap_or(at).saturating_sub(waited).max(self.began);
                sink.add(stack, Interval { from: from.min(at), to: at }, waited, State::Waiting, 0);
            }
        }
    }

    fn settle_asleep(&mut self, at: u64, last: bool, sink: &mut Sink<'_>) {
        let is_asleep = self.time.phase() == Phase::Asleep;
        let slept = self.sleeps.settle((self.time.slept(), at), is_asleep, last, sink.between_drains);
        for Slept { stack, time, interval } in slept {
            sink.add(stack, interval, time, State::Asleep, 1);
            self.time.give_slept(time);
        }
        let left = self.time.slept();
        if last && left > 0 {
            let interval = Interval { from: at.saturating_sub(left), to: at };
            sink.add(Stack { id: sink.no_stack, cut: cut::SHORT }, interval, left, State::Asleep, 0);
            self.time.give_slept(left);
        }
    }
}

/// CPU time of one stack.
struct Part {
    stack: Stack,
    /// Where it was spent.
    interval: Interval,
    /// ns.
    time: u64,
    hits: u32,
}

/// Most periods that a stack in the kernel stands for.
const MOST_PERIODS: u64 = 4;

/// After a pause of this length, ns, CPU time counts as spent after it.
const PAUSE: u64 = 10_000_000;

/// Periods up to which a life is short.
const SHORT_LIFE: u64 = 20;

/// How many of the hits stand for no more than `pending` ns of CPU time, from the first one on.
fn covered(pending: u64, hits: &[Hit]) -> usize {
    let mut sum = 0u64;
    hits.iter()
        .take_while(|hit| {
            sum += if hit.in_user_code { hit.period } else { 0 };
            sum <= pending
        })
        .count()
}

/// The time of each hit if `pending` ns of CPU time are assigned, and the time that is left over.
fn shares(pending: u64, hits: &[Hit], last: bool) -> (Vec<u64>, u64) {
    let sum = |user: bool| -> u64 {
        hits.iter().filter(|hit| hit.in_user_code == user).map(|hit| hit.period).sum()
    };
    let (user, kernel) = (sum(true), sum(false));
    let scaled =
        |time: u64, part: u64, of: u64| (u128::from(time) * u128::from(part) / u128::from(of.max(1))) as u64;
    // The limit exists because the kernel is not sampled while it switches threads.
    let rest = pending.saturating_sub(user).min(kernel.saturating_mul(MOST_PERIODS));
    let times: Vec<u64> = hits
        .iter()
        .map(|hit| match hit.in_user_code {
            // If the thread has ended, its stacks get no more than it ran.
            true if last && user > pending => scaled(hit.period, pending, user),
            true => hit.period,
            false => scaled(rest, hit.period, kernel),
        })
        .collect();
    let left = pending.saturating_sub(times.iter().sum());
    (times, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(user: &[bool]) -> Vec<Hit> {
        let hit = |&in_user_code| Hit {
            stack: Stack { id: StackId(0), cut: 0 },
            interval: Interval { from: 0, to: 0 },
            in_user_code,
            period: 1000,
            at_start: false,
        };
        user.iter().map(hit).collect()
    }

    #[test]
    fn own_code_gets_periods_and_the_kernel_the_rest() {
        assert_eq!(
            shares(5000, &hits(&[true, false, true, false]), false),
            (vec![1000, 1500, 1000, 1500], 0)
        );
        // A stack in the kernel stands for a limited time.
        assert_eq!(shares(9000, &hits(&[true, false]), false), (vec![1000, 4000], 4000));
        // Without a stack in the kernel the rest is kept.
        assert_eq!(shares(5000, &hits(&[true, true]), false), (vec![1000, 1000], 3000));
        // With more hits than time, the others wait until the clock catches up, unless the thread has ended.
        assert_eq!(covered(1500, &hits(&[false, true, false, true, false])), 3);
        assert_eq!(covered(2000, &hits(&[true, true, false])), 3);
        assert_eq!(covered(500, &hits(&[true])), 0);
        assert_eq!(shares(1500, &hits(&[true, true, false]), true), (vec![750, 750, 0], 0));
        assert_eq!(shares(700, &[], true), (vec![], 700));
        assert_eq!(shares(0, &hits(&[false]), true), (vec![0], 0));
    }
}
