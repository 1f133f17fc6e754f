//! One thread: its stacks, and the time that they stand for.
//!
//! Stacks are collected for a moment and then *settled* together. A stack in the program's own code stands for one
//! period of CPU time. The rest of the thread's CPU time was spent in the kernel and is divided among the stacks
//! taken there. Hits are never scaled to the CPU time: if the kernel cannot be sampled, its share would fall on the
//! program's own code. (Measured with programs that know their own times: a hit in user code is worth 0.93 to 1.08
//! periods under all conditions, shares of hits are wrong by up to a third.)

use super::burst_start::BurstStart;
use super::time::{Phase, SwitchCost, ThreadTime};
use crate::recording::recorder::Recorder;
use stackglass_procfs::threads::Files;
use stackglass_profile::{Cut, Nanos, Sample, StackId, State, ThreadNumber};
use stackglass_wire::{ThreadId, ThreadName, cut};

/// A stack and the reason for its cut (0: it is complete).
pub(super) type Stack = (StackId, u8);

/// A stack of the running thread.
#[derive(Clone, Copy, Debug)]
struct Hit {
    stack: Stack,
    at: u64,
    /// The thread ran its own code; otherwise it was in the kernel.
    in_user_code: bool,
    /// CPU time since the last sample, ns.
    period: u64,
    /// It was taken in the thread's own code, shortly after the thread got a processor.
    at_start: bool,
}

/// What is known of the place where a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sleep {
    /// The stack was not read.
    Unknown,
    /// It sleeps on this stack.
    On(Stack),
}

/// A stack on which a thread slept.
#[derive(Clone, Copy, Debug)]
struct Place {
    stack: Stack,
    /// Observed time asleep there, ns.
    time: u64,
    /// Number of observed short sleeps there.
    brief: u64,
}

/// Shorter sleeps may fall between two reads, ns: the observed ones stand for all of them.
const BRIEF: u64 = 50_000_000;

/// One thread of one image.
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// Number in its image.
    pub number: ThreadId,
    pub name: ThreadName,
    pub began: u64,
    pub time: ThreadTime,
    burst_began: u64,
    burst_start: BurstStart,
    sleep: Sleep,
    /// Start of the current sleep, or of the part of it that was not settled.
    sleeps_since: u64,
    pub files: Files,
    /// Something happened since it was last settled.
    pub moved: bool,
    /// The recording has it.
    pub announced: bool,
    /// Copies of its stack beyond the sampled top, if it is deep.
    pub deep: Option<Box<super::deep::DeepStack>>,
    hits: Vec<Hit>,
    /// Where it slept since it was last settled.
    asleep: Vec<Place>,
    last_awake: Option<Stack>,
    last_asleep: Option<Stack>,
}

/// Where the settled samples of one thread go.
pub(super) struct Sink<'a> {
    pub recorder: &'a mut Recorder,
    pub thread: ThreadNumber,
    /// A stack without frames.
    pub no_stack: StackId,
    /// Kernel time is not sampled here.
    pub user_only: bool,
}

impl Sink<'_> {
    fn add(&mut self, (stack, cut): Stack, at: u64, time: u64, state: State, hits: u32) {
        let cut = (cut != 0).then_some(Cut(cut));
        let (thread, clock, time) = (self.thread, Nanos(at), Nanos(time));
        self.recorder.add_sample(Sample { stack, thread, task: 0, clock, state, cut, hits, time });
    }
}

impl Thread {
    /// A thread that begins at `at`.
    pub(super) fn new(pid: u32, tid: u32, number: ThreadId, at: u64, phase: Phase) -> Thread {
        Thread {
            pid,
            tid,
            number,
            name: [0; 16],
            began: at,
            time: ThreadTime::new(at, phase),
            burst_began: at,
            burst_start: BurstStart::default(),
            sleep: Sleep::Unknown,
            sleeps_since: at,
            files: Files::new(pid, tid),
            moved: false,
            announced: false,
            deep: None,
            hits: Vec::new(),
            asleep: Vec::new(),
            last_awake: None,
            last_asleep: None,
        }
    }

    /// Adds a stack of the running thread.
    pub(super) fn hit(&mut self, stack: Stack, at: u64, in_user_code: bool, period: u64) {
        let at_start = in_user_code
            && self.time.phase() == Phase::Running
            && self.burst_start.add_hit(at.saturating_sub(self.burst_began), period);
        self.hits.push(Hit { stack, at, in_user_code, period, at_start });
    }

    /// From now on it is in another phase.
    pub(super) fn enter(&mut self, phase: Phase, at: u64) {
        if self.time.phase() == Phase::Asleep {
            self.count_sleep(at, true);
        }
        match (self.time.phase(), phase) {
            (Phase::Running, Phase::Running) => {}
            (Phase::Running, _) => self.burst_start.add_burst(at.saturating_sub(self.burst_began)),
            (_, Phase::Running) => self.burst_began = at,
            _ => {}
        }
        self.time.enter(phase, at);
        (self.sleep, self.sleeps_since) = (Sleep::Unknown, self.time.until());
    }

    /// It sleeps on this stack.
    pub(super) fn asleep_on(&mut self, stack: Stack) {
        self.sleep = Sleep::On(stack);
    }

    /// Adds the current sleep, up to `at`, to its stack if that is known.
    fn count_sleep(&mut self, at: u64, ends: bool) {
        let Sleep::On(stack) = self.sleep else { return };
        let time = at.saturating_sub(self.sleeps_since);
        self.sleeps_since = self.sleeps_since.max(at);
        let brief = u64::from(ends && time < BRIEF);
        match self.asleep.iter_mut().find(|place| place.stack == stack) {
            Some(place) => (place.time, place.brief) = (place.time + time, place.brief + brief),
            None => self.asleep.push(Place { stack, time, brief }),
        }
    }

    /// Whether stacks wait to be settled.
    pub(super) fn has_hits(&self) -> bool {
        !self.hits.is_empty()
    }

    /// Whether stacks or CPU time wait to be settled.
    pub(super) fn has_events(&self) -> bool {
        self.moved || !self.hits.is_empty()
    }

    /// Forgets all stacks and all time: the recording starts again at `at`.
    pub(super) fn restart(&mut self, at: u64, cost: &SwitchCost) {
        self.time.restart(at, cost);
        self.hits.clear();
        self.asleep.clear();
        (self.last_awake, self.last_asleep, self.sleep, self.sleeps_since) = (None, None, Sleep::Unknown, at);
    }

    /// Divides all time up to `at` among stacks. Time without a stack waits for the next call, unless this is the
    /// `last`.
    pub(super) fn settle(&mut self, at: u64, last: bool, cost: &SwitchCost, sink: &mut Sink<'_>) {
        self.time.advance(at);
        let at = self.time.until();
        self.settle_awake(at, last, cost, sink);
        self.settle_waited(at, last, sink);
        self.settle_asleep(at, last, sink);
        self.moved = false;
    }

    fn settle_awake(&mut self, at: u64, last: bool, cost: &SwitchCost, sink: &mut Sink<'_>) {
        let pending = self.time.pending(cost).max(0) as u64;
        let start = &mut self.burst_start;
        self.hits.retain(|hit| !hit.at_start || !start.is_surplus(hit.period));
        let (times, mut rest) = shares(pending, &self.hits, last);
        let ran = self.time.clock(cost);
        for (hit, time) in self.hits.iter().zip(&times) {
            sink.add(hit.stack, hit.at, *time, State::Awake, 1);
            self.last_awake = Some(hit.stack);
        }
        self.time.give(times.iter().sum());
        let period = self.hits.last().map_or(1_000_000, |hit| hit.period);
        self.hits.clear();
        // After only a few periods, it is not known whether they were spent in its own code or in the kernel.
        let in_kernel = sink.user_only && rest > 4 * period && ran > 20 * period;
        let stack = match self.last_awake {
            _ if in_kernel => (sink.no_stack, cut::IN_KERNEL),
            Some(stack) if last && rest <= period => stack,
            _ if last => (sink.no_stack, cut::SHORT),
            _ => return,
        };
        if !last {
            // The last period may still turn out to be the program's own.
            rest -= period;
        }
        if rest > 0 {
            sink.add(stack, at, rest, State::Awake, 0);
            self.time.give(rest);
        }
    }

    fn settle_waited(&mut self, at: u64, last: bool, sink: &mut Sink<'_>) {
        let stack = self.last_awake.or(self.last_asleep);
        if let Some(stack) = stack.or(last.then_some((sink.no_stack, cut::SHORT))) {
            let waited = self.time.take_waited();
            if waited > 0 {
                sink.add(stack, at, waited, State::Waiting, 0);
            }
        }
    }

    fn settle_asleep(&mut self, at: u64, last: bool, sink: &mut Sink<'_>) {
        let mut goes_on = 0;
        if self.time.phase() == Phase::Asleep {
            self.count_sleep(at, false);
            // The stack of the current sleep may still be read.
            goes_on = if last { 0 } else { at.saturating_sub(self.sleeps_since) };
        }
        let seen: u64 = self.asleep.iter().map(|place| place.time).sum();
        let unseen = self.time.slept().saturating_sub(seen + goes_on);
        let mut brief: u64 = self.asleep.iter().map(|place| place.brief).sum();
        if brief == 0 && (last || unseen > BRIEF) && unseen > 0 {
            // No short sleep was observed: they are attributed to the last observed place.
            let Some(stack) = self.last_asleep.or(self.asleep.last().map(|place| place.stack)) else {
                if last {
                    sink.add((sink.no_stack, cut::SHORT), at, unseen, State::Asleep, 0);
                    self.time.give_slept(unseen);
                }
                return;
            };
            self.asleep.push(Place { stack, time: 0, brief: 1 });
            brief = 1;
        }
        for Place { stack, time, brief: times } in std::mem::take(&mut self.asleep) {
            let share = (u128::from(unseen) * u128::from(times) / u128::from(brief.max(1))) as u64;
            sink.add(stack, at, time + share, State::Asleep, 1);
            self.time.give_slept(time + share);
            self.last_asleep = Some(stack);
        }
    }
}

/// Periods that a stack in the kernel may stand for at most.
const MOST_PERIODS: u64 = 4;

/// What each hit stands for if `pending` ns of CPU time are to be divided, and what remains.
fn shares(pending: u64, hits: &[Hit], last: bool) -> (Vec<u64>, u64) {
    let sum = |user: bool| -> u64 {
        hits.iter().filter(|hit| hit.in_user_code == user).map(|hit| hit.period).sum()
    };
    let (user, kernel) = (sum(true), sum(false));
    let scaled =
        |time: u64, part: u64, of: u64| (u128::from(time) * u128::from(part) / u128::from(of.max(1))) as u64;
    // A stack in the kernel stands for a few periods at most: the kernel is not sampled while it switches threads.
    let rest = pending.saturating_sub(user).min(kernel.saturating_mul(MOST_PERIODS));
    let times: Vec<u64> = hits
        .iter()
        .map(|hit| match hit.in_user_code {
            // For a thread that has ended, the stacks do not get more than its CPU time.
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
            stack: (StackId(0), 0),
            at: 0,
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
        // A hit in the kernel stands for no more than this.
        assert_eq!(shares(9000, &hits(&[true, false]), false), (vec![1000, 4000], 4000));
        // Without a stack in the kernel, the rest waits.
        assert_eq!(shares(5000, &hits(&[true, true]), false), (vec![1000, 1000], 3000));
        // More hits than CPU time: the clock catches up, unless the thread has ended.
        assert_eq!(shares(1500, &hits(&[true, true, false]), false), (vec![1000, 1000, 0], 0));
        assert_eq!(shares(1500, &hits(&[true, true, false]), true), (vec![750, 750, 0], 0));
        assert_eq!(shares(700, &[], true), (vec![], 700));
        assert_eq!(shares(0, &hits(&[false]), true), (vec![0], 0));
    }
}
