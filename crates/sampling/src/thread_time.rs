//! Which stack gets which part of a thread's time.
//!
//! Time that a thread ran belongs to a stack taken while it ran: the next one, or the last one where the thread has lost its
//! CPU. Time that it did not run belongs to the stack on which it sleeps, except for its waits for a CPU. A stack that the stream
//! has no room for gets nothing: its time is kept for a later one, so that the sums stay exact.

use crate::{CpuAccount, LastStack, hash};
use stackglass_wire::{State, cut};

/// A rest of a thread that has not run is pushed when it reaches this, ns. A recording that is read earlier may lack up to as much.
const LONG_REST: u64 = 10_000_000;
/// Where the thread's state is read for that, each further one is twice as long, so often.
const DOUBLINGS: u8 = 3;

/// A stack that gets time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack<'a> {
    /// Lookup addresses, leaf first.
    pub frames: &'a [u64],
    /// Why the stack is incomplete, 0 if it is complete.
    pub cut: u8,
    /// The async task that the thread polls, 0 for none.
    pub task: u64,
}

impl Stack<'_> {
    /// A sample without frames, for this reason.
    pub fn unsampled(cut: u8) -> Stack<'static> {
        Stack { frames: &[], cut, task: 0 }
    }
}

/// Where one thread's samples go.
pub trait SampleSink {
    /// Adds a stack that was taken `hits` times and stands for `time` ns, at the moment `at`. False if there is no room.
    fn push_sample(&mut self, at: u64, time: u64, state: State, stack: Stack<'_>, hits: u32) -> bool;

    /// Adds `time` ns to the thread's last stack. False if there is no room.
    fn push_repeat(&mut self, at: u64, time: u64, state: State) -> bool;
}

/// One thread's time, and the stack that last got some of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct ThreadTime {
    /// What the thread ran and rested.
    pub account: CpuAccount,
    last: LastStack,
    /// Hash of the stack on which the thread sleeps.
    hash: u64,
    /// How often a rest was pushed after its state was read, since the thread has run; at most [`DOUBLINGS`].
    doublings: u8,
}

impl ThreadTime {
    /// A thread without a stack.
    pub fn new(account: CpuAccount) -> ThreadTime {
        ThreadTime { account, ..ThreadTime::default() }
    }

    /// The kind of stack that last got time.
    pub fn last(&self) -> LastStack {
        self.last
    }

    /// A stack taken while the thread ran: gets all the time that it ran since the last one.
    pub fn push_running(&mut self, sink: &mut impl SampleSink, at: u64, stack: Stack<'_>) {
        let time = self.account.pending();
        if sink.push_sample(at, time, State::Awake, stack, 1) {
            self.account.assign_pending();
            self.last = LastStack::Running;
        }
    }

    /// A stack taken while the thread ran: gets a part of the time that it ran since the last one. Whether there was room.
    pub fn push_part(&mut self, sink: &mut impl SampleSink, at: u64, stack: Stack<'_>, time: u64) -> bool {
        let time = time.min(self.account.pending());
        let is_pushed = sink.push_sample(at, time, State::Awake, stack, 1);
        if is_pushed {
            self.account.assign(time);
            self.last = LastStack::Running;
        }
        is_pushed
    }

    /// The thread ran on after its last running stack, which gets the time.
    pub fn extend_running(&mut self, sink: &mut impl SampleSink, at: u64) {
        let time = self.account.pending();
        if time > 0 && self.last == LastStack::Running && sink.push_repeat(at, time, State::Awake) {
            self.account.assign_pending();
        }
    }

    /// The stack on which the thread sleeps: gets the rest. An equal stack is not pushed again.
    pub fn push_sleeping(&mut self, sink: &mut impl SampleSink, at: u64, stack: Stack<'_>) {
        let hash = hash(stack.frames) ^ stack.task.rotate_left(32);
        self.doublings = 0;
        if self.last == LastStack::Sleeping && self.hash == hash {
            return self.extend_sleeping(sink, at);
        }
        let time = self.account.rest(false);
        if sink.push_sample(at, time, State::Asleep, stack, 1) {
            self.account.assign_rest(time);
            (self.last, self.hash) = (LastStack::Sleeping, hash);
        }
    }

    /// Whether the rest of a thread that was seen asleep, and has not run since, is worth an event. Until then, it is kept. The thread
    /// may have been woken and wait for a CPU, which the kernel counts only once it runs. What such a wait exceeds the rest by comes off
    /// later ones.
    pub fn has_long_rest(&self) -> bool {
        self.account.rest(false) >= LONG_REST << self.doublings
    }

    /// A thread that still sleeps, as its state says, and has not run: the stack on which it sleeps gets the long rest. To read the
    /// state costs a system call: the longer the thread sleeps, the rarer.
    pub fn push_long_rest(&mut self, sink: &mut impl SampleSink, at: u64) {
        self.extend_sleeping(sink, at);
        self.doublings = DOUBLINGS.min(self.doublings + 1);
    }

    /// The last stack gets the rest. The rest is kept while there is no stack.
    pub fn extend_sleeping(&mut self, sink: &mut impl SampleSink, at: u64) {
        self.extend_rest(sink, at, false);
    }

    fn extend_rest(&mut self, sink: &mut impl SampleSink, at: u64, all: bool) {
        let time = self.account.rest(all);
        if time > 0 && self.last != LastStack::NoStack && sink.push_repeat(at, time, State::Asleep) {
            self.account.assign_rest(time);
        }
    }

    /// The thread waited `time` ns for a CPU, where it was last seen: after it was preempted there, or after it slept there. Returns
    /// the time that was assigned.
    pub fn push_waiting(&mut self, sink: &mut impl SampleSink, at: u64, time: u64) -> u64 {
        let time = time.min(self.account.rest(false));
        let has_stack = matches!(self.last, LastStack::Running | LastStack::Sleeping);
        if time == 0 || !has_stack || !sink.push_repeat(at, time, State::Waiting) {
            return 0;
        }
        self.account.assign_rest(time);
        time
    }

    /// How long a thread that is ready to run now has certainly waited for a CPU since, where the kernel has counted no wait yet: it
    /// does once the wait has ended. All of the rest if the thread was last seen running. Otherwise, the rest since `ready_since`,
    /// the moment at which its state first said that it was ready, if that was read.
    pub fn unended_wait(&self, ready_since: Option<u64>) -> u64 {
        let rest = self.account.rest(false);
        match self.last {
            LastStack::Running => rest,
            LastStack::Sleeping => {
                ready_since.map_or(0, |since| self.account.until().saturating_sub(since)).min(rest)
            }
            LastStack::NoStack | LastStack::Unsampled => 0,
        }
    }

    /// No stack can be taken of what the thread ran, for this reason.
    pub fn push_unsampled(&mut self, sink: &mut impl SampleSink, at: u64, reason: u8) {
        self.push_unsampled_part(sink, at, reason, u64::MAX);
    }

    /// No stack can be taken of a part of what the thread ran, for this reason.
    pub fn push_unsampled_part(&mut self, sink: &mut impl SampleSink, at: u64, reason: u8, time: u64) {
        let time = time.min(self.account.pending());
        if time > 0 && sink.push_sample(at, time, State::Awake, Stack::unsampled(reason), 0) {
            self.account.assign(time);
            self.last = LastStack::Unsampled;
        }
    }

    /// Gives all that is left: the thread ends, or the recording does.
    pub fn finish(&mut self, sink: &mut impl SampleSink) {
        let at = self.account.until();
        let ran = self.account.pending();
        if self.last == LastStack::NoStack {
            if sink.push_sample(at, ran, State::Awake, Stack::unsampled(cut::ENDED), 0) {
                self.account.assign_pending();
                self.last = LastStack::Unsampled;
            }
            return self.extend_rest(sink, at, true);
        }
        self.extend_rest(sink, at, true);
        let assigned = ran > 0
            && match self.last {
                // A stack of sleep gets no time that the thread ran.
                LastStack::Sleeping => {
                    sink.push_sample(at, ran, State::Awake, Stack::unsampled(cut::ENDED), 0)
                }
                _ => sink.push_repeat(at, ran, State::Awake),
            };
        if assigned {
            self.account.assign_pending();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sums the time of each state, by the first frame of the stack that got it; 0 for samples without frames.
    #[derive(Default)]
    struct Sums {
        pushed: Vec<(u64, State, u64)>,
        current: u64,
        samples: usize,
        is_full: bool,
    }

    impl SampleSink for Sums {
        fn push_sample(&mut self, _: u64, time: u64, state: State, stack: Stack<'_>, _: u32) -> bool {
            if self.is_full {
                return false;
            }
            self.current = stack.frames.first().copied().unwrap_or(0);
            self.samples += 1;
            self.pushed.push((self.current, state, time));
            true
        }

        fn push_repeat(&mut self, _: u64, time: u64, state: State) -> bool {
            if !self.is_full {
                self.pushed.push((self.current, state, time));
            }
            !self.is_full
        }
    }

    impl Sums {
        fn of(&self, frame: u64, state: State) -> u64 {
            self.pushed
                .iter()
                .filter(|(f, s, _)| (*f, *s) == (frame, state))
                .map(|(.., time)| time / MS)
                .sum()
        }
    }

    fn stack(frames: &[u64]) -> Stack<'_> {
        Stack { frames, cut: 0, task: 0 }
    }

    #[test]
    fn each_part_of_the_time_goes_to_its_stack() {
        let (mut time, mut sums) = (ThreadTime::new(CpuAccount::open(0, 0)), Sums::default());
        time.account.update(10 * MS, 4 * MS);
        time.push_running(&mut sums, 10 * MS, stack(&[1]));
        assert_eq!((time.last(), sums.of(1, State::Awake)), (LastStack::Running, 4));
        // 6 ms of rest, of which it was runnable for 2: they belong to the place where it was preempted.
        assert_eq!(time.push_waiting(&mut sums, 10 * MS, 2 * MS), 2 * MS);
        time.account.update(30 * MS, 5 * MS);
        time.extend_running(&mut sums, 30 * MS);
        time.push_sleeping(&mut sums, 30 * MS, stack(&[2]));
        assert_eq!(
            (sums.of(1, State::Awake), sums.of(1, State::Waiting), sums.of(2, State::Asleep)),
            (5, 2, 23)
        );
        assert_eq!(time.push_waiting(&mut sums, 30 * MS, MS), 0, "nothing is left");
        time.account.update(40 * MS, 5 * MS);
        let samples = sums.samples;
        // It was woken, waited for a CPU for 3 ms, and sleeps there again.
        assert_eq!(time.push_waiting(&mut sums, 40 * MS, 3 * MS), 3 * MS);
        time.push_sleeping(&mut sums, 40 * MS, stack(&[2]));
        assert_eq!(
            (sums.of(2, State::Waiting), sums.of(2, State::Asleep), sums.samples),
            (3, 30, samples),
            "an equal stack is not pushed again"
        );
        time.account.update(45 * MS, 6 * MS);
        assert!(time.push_part(&mut sums, 45 * MS, stack(&[1]), MS / 2));
        assert_eq!((time.account.pending(), time.last()), (MS / 2, LastStack::Running));
        assert!(time.push_part(&mut sums, 45 * MS, stack(&[1]), MS));
        assert_eq!(time.push_waiting(&mut sums, 45 * MS, 2 * MS), 2 * MS);
        time.push_sleeping(&mut sums, 45 * MS, stack(&[2]));
        time.account.update(50 * MS, 8 * MS);
        time.finish(&mut sums);
        assert_eq!(
            (sums.of(2, State::Awake), sums.of(0, State::Awake)),
            (0, 2),
            "no sleeping stack gets CPU time"
        );
        assert_eq!(sums.pushed.iter().map(|(.., time)| time).sum::<u64>(), 50 * MS);
        assert_eq!(time.account.assigned(), 8 * MS);
    }

    #[test]
    fn the_longer_a_thread_sleeps_the_rarer_is_its_state_read() {
        let (mut time, mut sums) = (ThreadTime::new(CpuAccount::open(0, 0)), Sums::default());
        time.push_sleeping(&mut sums, 0, stack(&[1]));
        let sleep = |time: &mut ThreadTime, sums: &mut Sums, from: u64| {
            let mut moments = Vec::new();
            for now in from + 1..=from + 400 {
                time.account.update(now * MS, 0);
                if time.has_long_rest() {
                    time.push_long_rest(sums, now * MS);
                    moments.push(now - from);
                }
            }
            moments
        };
        assert_eq!(sleep(&mut time, &mut sums, 0), [10, 30, 70, 150, 230, 310, 390]);
        // It was woken, has run, and sleeps at the same place: it may be woken soon again.
        time.push_sleeping(&mut sums, 400 * MS, stack(&[1]));
        assert_eq!(sums.of(1, State::Asleep), 400);
        assert_eq!(sleep(&mut time, &mut sums, 400)[..3], [10, 30, 70]);
    }

    #[test]
    fn what_a_ready_thread_rests_is_a_wait() {
        let (mut time, mut sums) = (ThreadTime::new(CpuAccount::open(0, 0)), Sums::default());
        time.account.update(5 * MS, 0);
        assert_eq!(time.unended_wait(Some(2 * MS)), 0, "no stack");
        time.push_sleeping(&mut sums, 5 * MS, stack(&[1]));
        time.account.update(25 * MS, 0);
        assert_eq!(time.unended_wait(None), 0, "it may have slept until now");
        assert_eq!(time.unended_wait(Some(15 * MS)), 10 * MS, "it may have slept until its state was read");
        assert_eq!(time.unended_wait(Some(2 * MS)), 20 * MS, "the time before is assigned");
        time.account.update(26 * MS, MS);
        time.push_running(&mut sums, 26 * MS, stack(&[2]));
        time.extend_sleeping(&mut sums, 26 * MS);
        time.account.update(30 * MS, MS);
        assert_eq!(time.unended_wait(None), 4 * MS, "it was preempted");
    }

    #[test]
    fn a_full_stream_loses_no_time() {
        let (mut time, mut sums) = (ThreadTime::new(CpuAccount::open(0, 0)), Sums::default());
        time.account.update(10 * MS, 4 * MS);
        sums.is_full = true;
        time.push_running(&mut sums, 10 * MS, stack(&[1]));
        time.push_sleeping(&mut sums, 10 * MS, stack(&[2]));
        time.push_unsampled(&mut sums, 10 * MS, cut::BLOCKED);
        assert_eq!((time.last(), time.account.assigned()), (LastStack::NoStack, 0));
        sums.is_full = false;
        time.finish(&mut sums);
        assert_eq!((sums.of(0, State::Awake), sums.of(0, State::Asleep)), (4, 6));
    }
}
