//! Samples a program and all its descendants from outside. Nothing runs inside the program, and nothing interrupts
//! it.
//!
//! Perf events, which the kernel passes on to every thread and child, provide the stacks of running threads and the
//! thread events ([`events`]). They keep a table of all processes up to date ([`tree`]). Stacks are walked with the
//! unwind rules of the mapped files ([`mappings`], [`deep`]). Sleeping threads are read through `/proc`, at most once
//! in each sleep ([`sleepers`]). The time of each thread is divided among its stacks ([`time`], [`thread`]). All
//! samples go to a [`Recorder`].
//!
//! What the program can notice: `docs/EFFECTS.md`.

mod burst_start;
mod deep;
mod elf_file;
mod events;
mod files;
mod mappings;
mod phase_shift;
mod process;
mod sleepers;
mod thread;
mod time;
mod tree;
mod walking;

use crate::Recorder;
use events::{Events, Plan};
use phase_shift::PhaseShift;
use stackglass_procfs::clock::monotonic;
use stackglass_profile::Nanos;
use stackglass_sampling::Random;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
use tree::Tree;

/// Records younger than this are left for the next drain, because processors write them concurrently, ns.
const UNORDERED: u64 = 300_000;
/// Time after which all threads are settled, idle ones included, ns.
const SETTLE_ALL: u64 = 1_000_000_000;
/// Time between two drains: while nothing happens, and while threads fall asleep and wake up.
const CALM: Duration = Duration::from_millis(80);
const LIVELY: Duration = Duration::from_millis(20);

/// If threads begin less than so many delays apart, most of them are short-lived.
const MANY: u64 = 4;

/// Periods, in delays: usually, and while many threads are short-lived.
const USUAL: (f64, f64) = (0.97, 1.03);
const SHORTER: (f64, f64) = (0.1, 1.0);

/// The rate at which threads and processes begin.
struct Forks {
    /// Count at the last drain.
    latest: u64,
    counted: u64,
    since: u64,
    are_many: bool,
}

impl Forks {
    const ENOUGH: u64 = 16;
    const LONG: u64 = 100_000_000;

    fn new(now: u64) -> Forks {
        Forks { latest: 0, counted: 0, since: now, are_many: false }
    }

    /// `forks` threads have begun by `now`. They are many if they begin less than `each` ns apart.
    fn count(&mut self, forks: u64, now: u64, each: u64) {
        self.latest = forks;
        let (new, passed) = (forks - self.counted, now.saturating_sub(self.since));
        if new >= Forks::ENOUGH || passed >= Forks::LONG {
            self.are_many = passed / new.max(1) < each;
            (self.counted, self.since) = (forks, now);
        }
    }
}

/// Samples one program and its descendants.
pub(crate) struct Outside {
    events: Events,
    tree: Tree,
    settled: u64,
    phase_shift: PhaseShift,
    /// For the moments of drains, so that no program is in step with them, and for the periods of new threads.
    random: Random,
    delay: u64,
    forks: Forks,
}

impl Outside {
    /// Opens the events on the calling thread, which must be the one that starts the program. From its exec on,
    /// everything is recorded. Sampling begins at once or with [`Outside::set_sampling`].
    ///
    /// # Errors If perf events are refused here.
    pub(crate) fn prepare(delay: Duration, follow_children: bool, at_once: bool) -> io::Result<Outside> {
        let (delay, now) = (delay.as_nanos() as u64, monotonic());
        let mut random = Random::new(now);
        // With a round period, a program that repeats itself in a round time would always be sampled at the same
        // places.
        let period = (delay as f64 * random.between(USUAL)) as u64;
        let events = Events::open(Plan { period, at_once })?;
        let tree = Tree::new(!events.counts_kernel, at_once, follow_children);
        let phase_shift = PhaseShift::new(now);
        Ok(Outside { events, tree, settled: now, phase_shift, random, delay, forks: Forks::new(now) })
    }

    /// The program has been started: changes to this process do not affect it any more.
    pub(crate) fn started(&self) {
        stackglass_procfs::threads::allow_many_files();
    }

    /// Descriptors that become readable when it is time for a drain.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.events.descriptors()
    }

    /// Time until the next drain, unless a descriptor becomes readable earlier.
    pub(crate) fn pause(&mut self) -> Duration {
        let mean = if self.tree.is_lively() { LIVELY } else { CALM };
        mean.mul_f64(self.random.between((0.5, 1.5)))
    }

    /// Chooses the period of processes and threads that begin from now on. The kernel takes the first sample of a
    /// process after one period, and none of a shorter process. So the periods are shorter while many processes
    /// begin, and all differ: a hit stands for the period of its own thread.
    fn choose_period(&mut self) {
        let forks = self.tree.forks();
        if forks == self.forks.latest {
            return;
        }
        self.forks.count(forks, monotonic(), MANY * self.delay);
        let factor = self.random.between(if self.forks.are_many { SHORTER } else { USUAL });
        self.events.set_period((self.delay as f64 * factor) as u64);
    }

    /// Adds what has happened since the last call. Returns how full the fullest ring buffer was, 0 to 1.
    pub(crate) fn drain(&mut self, recorder: &mut Recorder) -> f64 {
        let fullest = self.drain_until(monotonic() - UNORDERED, recorder);
        self.choose_period();
        let Outside { events, tree, phase_shift, random, .. } = self;
        let now = monotonic();
        phase_shift.shift(now, tree.threads_now(), events, random);
        tree.set_worth(phase_shift.with_pauses(now));
        fullest
    }

    fn drain_until(&mut self, until: u64, recorder: &mut Recorder) -> f64 {
        let Outside { events, tree, .. } = self;
        tree.begin_drain(until);
        let fullest = events.drain(until, |record| tree.apply(record, recorder));
        tree.recover_lost(recorder);
        tree.read_sleepers(recorder);
        fullest
    }

    /// Divides all time so far among stacks, so that the recording can be shown or written.
    pub(crate) fn settle(&mut self, recorder: &mut Recorder) {
        let now = monotonic();
        let all = now.saturating_sub(self.settled) >= SETTLE_ALL;
        if all {
            self.settled = now;
        }
        self.tree.settle(all, recorder);
    }

    /// The same, for idle threads as well.
    pub(crate) fn settle_all(&mut self, recorder: &mut Recorder) {
        self.tree.settle(true, recorder);
    }

    /// Starts or stops the sampling. Time before the start belongs to no stack.
    pub(crate) fn set_sampling(&mut self, on: bool, recorder: &mut Recorder) {
        self.drain(recorder);
        self.events.set_sampling(on);
        self.tree.set_sampling(on, monotonic(), recorder);
    }

    /// Forgets all samples; processes and threads stay known.
    pub(crate) fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.drain(recorder);
        self.tree.forget_samples(recorder);
    }

    /// Number of processes that have not ended.
    pub(crate) fn processes(&self) -> usize {
        self.tree.processes()
    }

    /// Ends the sampling. Processes that go on have no end in the recording.
    pub(crate) fn close(mut self, recorder: &mut Recorder) -> Nanos {
        self.events.set_sampling(false);
        self.drain_until(u64::MAX, recorder);
        self.tree.close(recorder);
        Nanos(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_the_rate_of_forks() {
        let mut forks = Forks::new(0);
        // A compiler driver starts three programs at once, every 30 ms.
        for file in 1..=20 {
            forks.count(file * 3, file * 30_000_000, 4_000_000);
            assert!(!forks.are_many);
        }
        for process in 1..=100 {
            forks.count(60 + process, 600_000_000 + process * 1_200_000, 4_000_000);
        }
        assert!(forks.are_many);
    }
}
