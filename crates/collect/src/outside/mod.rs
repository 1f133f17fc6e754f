//! Samples a program and its children from outside: no code is added to the program, and nothing interrupts it.
//!
//! Perf events are inherited by every thread and child. They bring the stacks of running threads and report what happens
//! to threads and processes ([`events`]). A table of all processes follows from these reports ([`processes`]). Stacks
//! are walked with the unwind rules of the mapped files ([`mappings`], [`deep`]). Sleeping threads are read through /proc, at
//! most once for each sleep ([`sleepers`]). The time of each thread is split among its stacks ([`time`], [`thread`]).
//! All samples go directly into a [`Recorder`].
//!
//! `docs/EFFECTS.md` lists what the program can notice.

mod burst_start;
mod deep;
mod elf_file;
mod events;
mod files;
mod mappings;
mod phase_shift;
mod process;
mod process_table;
mod sleepers;
mod thread;
mod time;
mod walking;

use crate::Recorder;
use events::{Events, Plan};
use phase_shift::PhaseShift;
use process_table::ProcessTable;
use stackglass_procfs::clock::monotonic;
use stackglass_profile::Nanos;
use stackglass_sampling::Random;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Records younger than this, ns, wait for the next drain, because processors write them in parallel.
const UNORDERED: u64 = 300_000;
/// Time after which all threads are settled, even idle ones, ns.
const SETTLE_ALL: u64 = 1_000_000_000;
/// Time between two drains while no thread goes to sleep.
const CALM: Duration = Duration::from_millis(80);
/// Time between two drains while threads go to sleep.
const LIVELY: Duration = Duration::from_millis(20);

/// If threads begin less than so many delays apart, most of them are short.
const MANY: u64 = 4;

/// Range of periods, in delays.
const USUAL: (f64, f64) = (0.97, 1.03);
/// Range of periods where many threads are short, in delays.
const SHORTER: (f64, f64) = (0.1, 1.0);

/// How fast threads and processes begin.
struct Forks {
    /// Number at the last drain.
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

    /// `forks` have begun by `now`. They are many if they are less than `each` ns apart.
    fn count(&mut self, forks: u64, now: u64, each: u64) {
        self.latest = forks;
        let (new, passed) = (forks - self.counted, now.saturating_sub(self.since));
        if new >= Forks::ENOUGH || passed >= Forks::LONG {
            self.are_many = passed / new.max(1) < each;
            (self.counted, self.since) = (forks, now);
        }
    }
}

/// Samples one program and its children.
pub(crate) struct Outside {
    events: Events,
    processes: ProcessTable,
    settled: u64,
    phase_shift: PhaseShift,
    /// For the moments of drains, with which no program can be in step, and for the period of each new thread.
    random: Random,
    delay: u64,
    forks: Forks,
}

impl Outside {
    /// Opens the events on the calling thread, which must then start the program. Everything is seen from the program's exec
    /// on. Sampling begins at once, or with [`Outside::set_sampling`].
    ///
    /// # Errors
    /// If perf events are refused.
    pub(crate) fn prepare(delay: Duration, follow_children: bool, at_once: bool) -> io::Result<Outside> {
        let (delay, now) = (delay.as_nanos() as u64, monotonic());
        let mut random = Random::new(now);
        // A program that repeats itself in a round time would be sampled at the same places each time.
        let period = (delay as f64 * random.between(USUAL)) as u64;
        let events = Events::open(Plan { period, at_once })?;
        let processes = ProcessTable::new(!events.counts_kernel, at_once, follow_children);
        let phase_shift = PhaseShift::new(now);
        Ok(Outside { events, processes, settled: now, phase_shift, random, delay, forks: Forks::new(now) })
    }

    /// The program was started, so limits that it would have inherited may change.
    pub(crate) fn started(&self) {
        stackglass_procfs::threads::allow_many_files();
    }

    /// Descriptors on which poll(2) returns when a drain is due.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.events.descriptors()
    }

    /// How long to wait for the next drain, unless a descriptor is ready.
    pub(crate) fn pause(&mut self) -> Duration {
        let mean = if self.processes.is_lively() { LIVELY } else { CALM };
        mean.mul_f64(self.random.between((0.5, 1.5)))
    }

    /// Chooses the period of the next processes and threads. The kernel takes the first sample of a process after one period, and
    /// none of a shorter process. So if many processes come and go, periods are shorter, and all differ. A hit stands
    /// for the period of its own thread.
    fn choose_period(&mut self) {
        let forks = self.processes.forks();
        if forks == self.forks.latest {
            return;
        }
        self.forks.count(forks, monotonic(), MANY * self.delay);
        let factor = self.random.between(if self.forks.are_many { SHORTER } else { USUAL });
        self.events.set_period((self.delay as f64 * factor) as u64);
    }

    /// Reads all records since the last call. Returns how full the fullest ring was, 0 to 1.
    pub(crate) fn drain(&mut self, recorder: &mut Recorder) -> f64 {
        let fullest = self.drain_until(monotonic() - UNORDERED, recorder);
        self.choose_period();
        let Outside { events, processes, phase_shift, random, .. } = self;
        let now = monotonic();
        phase_shift.shift(now, processes.live_threads(), events, random);
        processes.set_period_worth(phase_shift.period_worth(now));
        fullest
    }

    fn drain_until(&mut self, until: u64, recorder: &mut Recorder) -> f64 {
        let Outside { events, processes, .. } = self;
        processes.begin_drain(until);
        let fullest = events.drain(until, |record| processes.apply(record, recorder));
        processes.recover_lost(recorder);
        processes.read_sleepers(recorder);
        fullest
    }

    /// Gives all time so far to stacks, so that the recording can be shown or written.
    pub(crate) fn settle(&mut self, recorder: &mut Recorder) {
        let now = monotonic();
        let all = now.saturating_sub(self.settled) >= SETTLE_ALL;
        if all {
            self.settled = now;
        }
        self.processes.settle(all, recorder);
    }

    /// The same for all threads, also idle ones.
    pub(crate) fn settle_all(&mut self, recorder: &mut Recorder) {
        self.processes.settle(true, recorder);
    }

    /// Starts or stops sampling. Time before a start belongs to no stack.
    pub(crate) fn set_sampling(&mut self, on: bool, recorder: &mut Recorder) {
        self.drain(recorder);
        self.events.set_sampling(on);
        self.processes.set_sampling(on, monotonic(), recorder);
    }

    /// Forgets all samples, but no process or thread.
    pub(crate) fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.drain(recorder);
        self.processes.forget_samples(recorder);
    }

    /// Processes that have not ended.
    pub(crate) fn processes(&self) -> usize {
        self.processes.processes()
    }

    /// Ends the recording. Processes that live on have no end in it.
    pub(crate) fn close(mut self, recorder: &mut Recorder) -> Nanos {
        self.events.set_sampling(false);
        self.drain_until(u64::MAX, recorder);
        self.processes.close(recorder);
        Nanos(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_the_rate_of_forks() {
        let mut forks = Forks::new(0);
        // A compiler's driver starts three programs at once, every 30 ms.
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
