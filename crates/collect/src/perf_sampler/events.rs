//! The perf events of a recorded program.
//!
//! Where that is allowed, they are events of the CPUs themselves, whatever runs there. Each moment of CPU time then has the same chance
//! of a stack, also in lives shorter than a period, and nothing is copied when the program starts threads or children. The
//! records of other programs are dropped by their process id. Otherwise the events are opened on the starting thread, and
//! inherited by the program and all its threads and children.
//!
//! One event samples: each time a thread has run for a period, the kernel copies its registers and the top of its stack. The
//! other event counts nothing. It reports what happens to threads: start, exit, exec, mappings of code, and switches. Each has
//! a separate ring, so that many samples displace no thread events. Inherited events begin with the program's exec. CPUs that are
//! sampled as a whole have several events that sample, which share a ring ([`cpu_periods`](super::cpu_periods)).

use stackglass_perf::attributes::{
    self, Attributes, EVERY_THREAD, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, flags,
    sample, set_enabled,
};
use stackglass_perf::records::{self, Record};
use stackglass_perf::registers;
use stackglass_perf::ring::{Raw, Ring};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Timers of each CPU that is sampled as a whole.
pub(super) const TIMERS: usize = 4;
/// Bytes of stack that the kernel copies with each sample. With the rest it fills the largest possible record.
pub(super) const DUMP: usize = 63 << 10;
/// Bytes of a ring of thread events.
const THREAD_EVENTS: usize = 256 << 10;
/// The same if it has those of all programs on its CPU.
const ALL_THREAD_EVENTS: usize = 1 << 20;
/// Most CPUs that are sampled as a whole. On larger machines, most of them would be sampled for other programs only.
const MOST_CPUS: usize = 64;
/// Largest ring of samples, in bytes.
const MOST_SAMPLES: usize = 4 << 20;
/// Smallest ring of samples, in bytes: four samples.
const LEAST_SAMPLES: usize = 256 << 10;
/// Time for which the rest of a ring must last when a drain is due, ns.
const LEAST_REST: u64 = 25_000_000;
/// Most bytes of all rings of samples, for machines with many CPUs.
const ALL_SAMPLES: usize = 64 << 20;

/// How the events sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Mean time between two samples of a CPU, ns.
    pub delay: u64,
    /// Time between two samples of each timer of a CPU, ns.
    pub periods: [u64; TIMERS],
    /// CPU time between two samples of a thread, ns, where the events are inherited.
    pub inherited_period: u64,
    /// Sampling begins with the program, and not with [`Events::set_sampling`].
    pub at_once: bool,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// Number of the CPU among those that have events.
    pub cpu: usize,
    /// It is from the ring of samples.
    pub is_sample: bool,
    /// Time of the record, ns.
    pub at: u64,
}

/// Whose events they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// Those of the CPUs.
    Cpus,
    /// Those of the starting thread, which are inherited.
    Inherited {
        /// Each thread keeps its own events. Otherwise the kernel swaps the events of related threads at switches. The time
        /// that a thread has run towards its next sample is then lost when a short-lived thread ends with its event.
        keeps_events: bool,
    },
}

impl Scope {
    fn target(self) -> u32 {
        if self == Scope::Cpus { EVERY_THREAD } else { 0 }
    }

    /// Whether samples hold the event's count.
    fn counted(self) -> bool {
        self == Scope::Inherited { keeps_events: true }
    }
}

/// All events of a recording.
pub(super) struct Events {
    thread_events: Vec<Ring>,
    samples: Vec<Ring>,
    /// The other timers of each CPU, which share its ring of samples.
    more_timers: Vec<Vec<OwnedFd>>,
    /// Time in the kernel is sampled as well.
    pub counts_kernel: bool,
    scope: Scope,
    at_once: bool,
    /// Rings with records, by the time of the oldest one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Events {
    /// Opens them on the calling thread, which must be the one that starts the program.
    ///
    /// # Errors
    /// If perf events are refused, or the kernel does not report switches (before Linux 4.3).
    pub(super) fn open(plan: Plan) -> io::Result<Events> {
        let cpus = online();
        if cpus.len() <= MOST_CPUS
            && let Ok(events) = Events::open_with(plan, true, Scope::Cpus, &cpus)
        {
            return Ok(events);
        }
        match Events::inherited(plan, true, &cpus) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Events::inherited(plan, false, &cpus)
            }
            opened => opened,
        }
    }

    /// Opens inherited events, where events of the CPUs would be allowed.
    #[cfg(test)]
    pub(super) fn open_inherited(plan: Plan) -> io::Result<Events> {
        Events::inherited(plan, true, &online())
    }

    /// Whether samples hold the event's count.
    #[cfg(test)]
    pub(super) fn are_counted(&self) -> bool {
        self.scope.counted()
    }

    fn inherited(plan: Plan, counts_kernel: bool, cpus: &[u32]) -> io::Result<Events> {
        let open =
            |keeps_events| Events::open_with(plan, counts_kernel, Scope::Inherited { keeps_events }, cpus);
        match open(true) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(false),
            opened => opened,
        }
    }

    fn open_with(plan: Plan, counts_kernel: bool, scope: Scope, cpus: &[u32]) -> io::Result<Events> {
        let at_once = plan.at_once;
        let mut events = Events {
            thread_events: Vec::new(),
            samples: Vec::new(),
            more_timers: Vec::new(),
            counts_kernel,
            scope,
            at_once,
            waiting: BinaryHeap::new(),
        };
        let thread_events = if scope == Scope::Cpus { ALL_THREAD_EVENTS } else { THREAD_EVENTS };
        let most = (ALL_SAMPLES / cpus.len().max(1)).next_power_of_two() / 2;
        let mut size = most.clamp(LEAST_SAMPLES, MOST_SAMPLES);
        for cpu in cpus.iter().copied() {
            let attributes = thread_events_of(counts_kernel, scope, thread_events);
            let ring = match Ring::open(&attributes, scope.target(), Some(cpu), thread_events) {
                // Linux before 5.12 reports no build ids.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    let older = Attributes { flags: attributes.flags & !flags::BUILD_ID, ..attributes };
                    Ring::open(&older, scope.target(), Some(cpu), thread_events)
                }
                opened => opened,
            };
            events.thread_events.push(ring?);
            let ring = loop {
                let samples = samples_of(plan, 0, counts_kernel, scope, size);
                match Ring::open(&samples, scope.target(), Some(cpu), size) {
                    // The ring is larger than this user may lock in memory.
                    Err(error)
                        if size > LEAST_SAMPLES
                            && matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) =>
                    {
                        size /= 2;
                    }
                    opened => break opened?,
                }
            };
            if scope == Scope::Cpus {
                let timer = |index| {
                    let attributes = samples_of(plan, index, counts_kernel, scope, size);
                    let timer = attributes::open(&attributes, scope.target(), Some(cpu))?;
                    attributes::set_output(&timer, &ring).map(|()| timer)
                };
                events.more_timers.push((1..TIMERS).map(timer).collect::<io::Result<_>>()?);
            }
            events.samples.push(ring);
        }
        Ok(events)
    }

    /// Whether they are events of the CPUs, whatever runs there.
    pub(super) fn are_of_cpus(&self) -> bool {
        self.scope == Scope::Cpus
    }

    /// The program is about to start. Events of CPUs begin here; inherited ones begin with the program's exec.
    pub(super) fn begin(&self) {
        if self.are_of_cpus() {
            self.thread_events.iter().for_each(|ring| set_enabled(ring, true));
            if self.at_once {
                self.set_sampling(true);
            }
        }
    }

    /// Sets the period of one timer of a CPU. A new period begins.
    pub(super) fn set_period_of(&self, cpu: usize, timer: usize, period: u64) {
        match timer.checked_sub(1) {
            None => attributes::set_period(&self.samples[cpu], period),
            Some(more) => attributes::set_period(&self.more_timers[cpu][more], period),
        }
    }

    /// Sets the period of threads and processes that start from now on. Others keep theirs.
    pub(super) fn set_period(&self, period: u64) {
        self.samples.iter().for_each(|ring| attributes::set_period(ring, period));
    }

    /// CPUs that have events.
    pub(super) fn cpus(&self) -> usize {
        self.samples.len()
    }

    /// Starts or stops sampling. Thread events continue.
    pub(super) fn set_sampling(&self, on: bool) {
        self.samples.iter().for_each(|ring| set_enabled(ring, on));
        self.more_timers.iter().flatten().for_each(|timer| set_enabled(timer, on));
    }

    /// Descriptors on which poll(2) returns when a ring needs a drain.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.thread_events.iter().chain(&self.samples).map(AsRawFd::as_raw_fd)
    }

    /// Reads all records up to the moment `until`, in the order of time. Later ones wait for the next call: by then all
    /// CPUs have written the records before them. Only records that are `wanted` are parsed; `table` is what both functions change.
    pub(super) fn drain<T>(
        &mut self,
        until: u64,
        table: &mut T,
        wanted: impl Fn(&mut T, Source, Raw<'_>) -> bool,
        mut each: impl FnMut(&mut T, Source, &Record<'_>),
    ) {
        let counted = self.scope.counted();
        self.waiting.clear();
        for index in 0..self.thread_events.len() + self.samples.len() {
            self.ring(index).refresh();
            self.wait(index);
        }
        while let Some(Reverse((at, index))) = self.waiting.pop() {
            if at > until {
                break;
            }
            let cpus = self.thread_events.len();
            let source = Source { cpu: index % cpus, is_sample: index >= cpus, at };
            let ring = self.ring(index);
            if let Some(raw) = ring.peek()
                && wanted(table, source, raw)
                && let Some(record) = records::parse(raw, counted)
            {
                each(table, source, &record);
            }
            ring.advance();
            self.wait(index);
        }
        self.thread_events.iter().chain(&self.samples).for_each(Ring::publish);
    }

    /// Queues a ring by the time of its oldest record. A record without a time is read first.
    fn wait(&mut self, index: usize) {
        let ring = self.ring(index);
        if let Some(raw) = ring.peek() {
            let at = records::time_of(raw).unwrap_or(0);
            self.waiting.push(Reverse((at, index)));
        }
    }

    /// Thread events come first: at equal times, a thread starts before it is sampled.
    fn ring(&mut self, index: usize) -> &mut Ring {
        let first = self.thread_events.len();
        if index < first { &mut self.thread_events[index] } else { &mut self.samples[index - first] }
    }
}

fn common(counts_kernel: bool, at_once: bool, scope: Scope) -> u64 {
    let mut bits = flags::DISABLED
        | flags::EXCLUDE_HYPERVISOR
        | flags::USE_CLOCKID
        | flags::SAMPLE_ID_ALL
        | flags::WATERMARK;
    match scope {
        Scope::Cpus => bits |= flags::EXCLUDE_IDLE,
        Scope::Inherited { .. } if at_once => bits |= flags::INHERIT | flags::ENABLE_ON_EXEC,
        Scope::Inherited { .. } => bits |= flags::INHERIT,
    }
    if !counts_kernel {
        bits |= flags::EXCLUDE_KERNEL;
    }
    bits
}

fn samples_of(plan: Plan, timer: usize, counts_kernel: bool, scope: Scope, size: usize) -> Attributes {
    // Inherited events whose count is in their samples are never swapped (Linux 6.12; refused before).
    let count = if scope.counted() { sample::READ } else { 0 };
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: if scope == Scope::Cpus { plan.periods[timer] } else { plan.inherited_period },
        sample_type: sample::TID
            | sample::TIME
            | sample::PERIOD
            | count
            | sample::REGS_USER
            | sample::STACK_USER,
        flags: common(counts_kernel, plan.at_once, scope),
        wakeup: due(size, plan.delay) as u32,
        sample_regs_user: registers::mask(),
        sample_stack_user: DUMP as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// The bytes of samples in a ring at which a drain is due: half of it if the other half lasts long enough, else a quarter. Each drain
/// costs a change of threads and the program's caches.
fn due(size: usize, delay: u64) -> usize {
    let rest = (size / 2 / DUMP) as u64 * delay;
    if rest >= LEAST_REST { size / 2 } else { size / 4 }
}

fn thread_events_of(counts_kernel: bool, scope: Scope, size: usize) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY,
        sample_period: 1,
        sample_type: sample::TID | sample::TIME,
        flags: common(counts_kernel, true, scope)
            | flags::MMAP
            | flags::MMAP2
            | flags::BUILD_ID
            | flags::COMM
            | flags::COMM_EXEC
            | flags::TASK
            | flags::CONTEXT_SWITCH,
        wakeup: (size / 4) as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// The CPUs that are online.
pub(crate) fn online() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut all = ranges(text.trim());
    if all.is_empty() {
        all = (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect();
    }
    all
}

fn ranges(text: &str) -> Vec<u32> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse::<u32>().ok()?.min(1 << 16))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(ranges("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(ranges("0"), [0]);
        assert!(ranges("").is_empty() && ranges("x-").is_empty());
    }
}
