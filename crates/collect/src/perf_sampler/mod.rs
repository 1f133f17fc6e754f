//! Samples a program and its children from outside: no code is added to the program, and no thread is stopped or signalled.
//!
//! Perf events of all CPUs, or events that are inherited by every thread and child, bring the stacks of running threads and report what happens
//! to threads and processes ([`events`]). A table of all processes follows from these reports ([`processes`]). Stacks
//! are walked with the unwind rules of the mapped files ([`mappings`], [`deep_stack`](stackglass_perf::deep_stack)). Sleeping threads
//! are read through /proc, at most once for each sleep ([`sleepers`], [`sleeps`]). The time of each thread is split among its stacks
//! ([`time`], [`thread`]). All samples go directly into a [`Recorder`].
//!
//! `docs/EFFECTS.md` lists what the program can notice.

mod alike;
mod burst_start;
mod cpu_periods;
mod elf_file;
mod events;
mod file_copy;
mod files;
mod interval;
mod mappings;
mod on_cpus;
mod period;
mod phase_shift;
mod placement;
mod process;
mod process_table;
#[cfg(test)]
mod replay;
mod running_image;
mod sleepers;
mod sleeps;
mod stack;
mod system;
mod thread;
mod time;
mod walking;

pub(crate) use events::online;
pub(crate) use running_image::RunningImage;

use cpu_periods::CpuPeriods;
use events::{Events, Plan};
use period::PeriodChoice;
use phase_shift::PhaseShift;
use process_table::ProcessTable;
use stackglass_profile::{Nanos, Recorder};
use stackglass_sampling::Random;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
use system::System;

/// Records younger than this, ns, wait for the next drain, because CPUs write them in parallel.
const UNORDERED: u64 = 300_000;
/// Time after which all threads are settled, even idle ones, ns.
const SETTLE_ALL: u64 = 1_000_000_000;
/// Mean time between two drains while no thread goes to sleep.
const STEADY: Duration = Duration::from_millis(80);
/// Mean time between two drains while threads go to sleep.
const SLEEPS: Duration = Duration::from_millis(20);
/// The same while stacks are deeper than samples. Each drain copies the missing part, and later ones agree with fewer stacks.
const DEEP: Duration = Duration::from_millis(15);

/// Samples one program and its children.
pub(crate) struct PerfSampler {
    system: System,
    events: Events,
    processes: ProcessTable,
    settled: u64,
    phase_shift: PhaseShift,
    /// Chooses the moments of drains, so that no program can be in step with them, and the periods of new threads.
    random: Random,
    periods: PeriodChoice,
    /// The periods of CPUs, if the events are theirs.
    cpu_periods: Option<CpuPeriods>,
}

impl PerfSampler {
    /// Opens the events on the calling thread, which must then start the program. Everything is seen from the program's exec
    /// on. Sampling begins at once, or with [`PerfSampler::set_sampling`].
    ///
    /// # Errors
    /// If perf events are refused.
    pub(crate) fn prepare(delay: Duration, follow_children: bool, at_once: bool) -> io::Result<PerfSampler> {
        PerfSampler::with(System::default(), Events::open, (delay, follow_children, at_once))
    }

    /// The same with events that are opened otherwise.
    fn with(
        system: System,
        open: impl FnOnce(Plan) -> io::Result<Events>,
        (delay, follow_children, at_once): (Duration, bool, bool),
    ) -> io::Result<PerfSampler> {
        let (delay, now) = (delay.as_nanos() as u64, system.now());
        let mut random = Random::new(now);
        let mut periods = PeriodChoice::new(delay, now);
        let cpu_periods = CpuPeriods::first(delay, &mut random);
        let inherited_period = periods.first(&mut random);
        let events = open(Plan { delay, periods: cpu_periods, inherited_period, at_once })?;
        let cpu_periods =
            events.are_of_cpus().then(|| CpuPeriods::new(delay, cpu_periods, events.cpus(), now));
        let (user_only, of_cpus) = (!events.counts_kernel, events.are_of_cpus());
        #[cfg(test)]
        system.note(|traced| traced.opened(&events, (user_only, at_once, follow_children)));
        let processes = ProcessTable::new(system.clone(), user_only, at_once, follow_children, of_cpus);
        let phase_shift = PhaseShift::new(delay, now);
        Ok(PerfSampler { system, events, processes, settled: now, phase_shift, random, periods, cpu_periods })
    }

    /// The program is about to be started.
    pub(crate) fn begin(&self) {
        self.events.begin();
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
        let (mean, spread) = match (self.processes.has_deep_stacks(), self.processes.has_new_sleepers()) {
            (true, _) => (DEEP, (0.9, 1.1)),
            (false, true) => (SLEEPS, (0.5, 1.5)),
            (false, false) => (STEADY, (0.5, 1.5)),
        };
        let pause = mean.mul_f64(self.random.between(spread));
        let change = match &self.cpu_periods {
            Some(cpu_periods) => cpu_periods.first_change(),
            None => self.phase_shift.until_next(self.system.now()),
        };
        change.map_or(pause, |change| pause.min(change))
    }

    /// Reads all records since the last call.
    pub(crate) fn drain(&mut self, recorder: &mut Recorder) {
        self.drain_until(self.system.now() - UNORDERED, recorder);
        let PerfSampler { system, events, processes, phase_shift, random, periods, cpu_periods, .. } = self;
        let now = system.now();
        if let Some(cpu_periods) = cpu_periods {
            return cpu_periods.renew(now, events, random);
        }
        let varies = phase_shift.shift(now, processes.live_threads(), events, random);
        let varied = varies.then(|| periods.varied(random));
        if let Some(period) = periods.next(processes.forks(), now, random).or(varied) {
            events.set_period(period);
        }
        let worth = phase_shift.period_worth(now);
        #[cfg(test)]
        system.note(|traced| traced.step(replay::Step::PeriodWorth(worth)));
        processes.set_period_worth(worth);
    }

    fn drain_until(&mut self, until: u64, recorder: &mut Recorder) {
        let PerfSampler { events, processes, cpu_periods, .. } = self;
        #[cfg(test)]
        self.system.note(|traced| traced.step(replay::Step::Drain { until, records: Vec::new() }));
        processes.begin_drain(until);
        let mut sinks = (&mut *processes, cpu_periods, &mut *recorder);
        events.drain(
            until,
            &mut sinks,
            |(processes, _cpu_periods, _), source, raw| {
                let wanted = processes.wants(source, raw);
                #[cfg(test)]
                self.system.note(|traced| {
                    let worth = _cpu_periods.as_ref().map(|periods| periods.worth(source.cpu, source.at));
                    traced.record(source, raw, wanted, worth);
                });
                wanted
            },
            |(processes, cpu_periods, recorder), source, record| {
                if let Some(cpu_periods) = cpu_periods {
                    cpu_periods.used(source.cpu, source.at);
                    processes.set_period(cpu_periods.worth(source.cpu, source.at));
                }
                processes.apply(source, record, recorder);
            },
        );
        processes.recover_lost(recorder);
        processes.read_sleepers(recorder);
    }

    /// Assigns all time so far to stacks, so that the recording can be shown or written.
    pub(crate) fn settle(&mut self, recorder: &mut Recorder) {
        let now = self.system.now();
        let all = now.saturating_sub(self.settled) >= SETTLE_ALL;
        if all {
            self.settled = now;
        }
        #[cfg(test)]
        self.system.note(|traced| traced.step(replay::Step::Settle { all }));
        self.processes.settle(all, recorder);
    }

    /// The same for all threads, also idle ones.
    pub(crate) fn settle_all(&mut self, recorder: &mut Recorder) {
        #[cfg(test)]
        self.system.note(|traced| traced.step(replay::Step::Settle { all: true }));
        self.processes.settle(true, recorder);
    }

    /// Starts or stops sampling. Time before a start belongs to no stack.
    pub(crate) fn set_sampling(&mut self, on: bool, recorder: &mut Recorder) {
        self.drain(recorder);
        self.events.set_sampling(on);
        let now = self.system.now();
        #[cfg(test)]
        self.system.note(|traced| traced.step(replay::Step::Sampling { on, now }));
        self.processes.set_sampling(on, now, recorder);
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
        #[cfg(test)]
        self.system.note(|traced| traced.step(replay::Step::Close));
        self.processes.close(recorder);
        Nanos(0)
    }
}
