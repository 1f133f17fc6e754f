//! The events at the functions of an allocator: opened for each thread of a process on each CPU, and read in the order of time.
//!
//! Each function has an event that records all calls, in few bytes, and one with the stacks of some of them. They have separate
//! rings, so that stacks displace no calls: a lost free would be a leak that is none. Threads that start later inherit the
//! events.

use super::UnpreparedError;
use super::calls::Callee;
use super::functions::{Function, Place};
use crate::perf_sampler::online;
use foldhash::{HashMap, HashSet};
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_perf::attributes::{self, Attributes};
use stackglass_perf::records::{self, PERF_RECORD_SAMPLE, Record, What};
use stackglass_perf::ring::{Raw, Ring};
use stackglass_perf::uprobe::{Call, Moment, Uprobes, each_call, some_stacks, without_records};
use stackglass_procfs::{process, threads};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of stack that come with a sample.
const STACK: u32 = 32 << 10;
/// Bytes of all rings of one kind, and of each.
const ALL_RINGS: usize = 64 << 20;
const LARGEST_RING: usize = 16 << 20;
const LEAST_RING: usize = 512 << 10;
/// Most events. Each takes more than a kilobyte of the kernel's memory.
const MOST_EVENTS: usize = 1 << 16;

/// An event happened.
pub(super) enum Happened<'a> {
    /// A function was called.
    Entered(Callee, Call),
    /// A function has returned.
    Left(Callee, Call),
    /// The stack in the entry of a function, which stands for so many calls.
    Sampled { callee: Callee, weight: u64, record: Record<'a> },
    /// So many records of calls were lost. Lost stacks make the others stand for more.
    Lost { calls: u64 },
}

/// Events that share a ring on each CPU.
#[derive(Default)]
struct Group {
    rings: Vec<Option<Ring>>,
    others: Vec<OwnedFd>,
}

/// All events of a recording.
pub(super) struct Events {
    pid: u32,
    calls: Group,
    stacks: Group,
    /// Keep the breakpoints while the others come and go: threads that begin would wait for that. They are closed last.
    _first: Vec<OwnedFd>,
    /// Calls between two stacks of one function, thread and CPU.
    period: u64,
    cpus: Vec<u32>,
    functions: Vec<Defined>,
    /// What the events of calls are about, by their numbers.
    moments: HashMap<u64, (Callee, Moment)>,
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    // Last: definitions outlive their events.
    _uprobes: Uprobes,
}

/// The definitions of a function.
struct Defined {
    place: Place,
    callee: Callee,
    entry: u64,
    /// `None` for `free`, which returns nothing.
    leave: Option<u64>,
}

impl Events {
    /// Opens those of calls, for all threads of process `pid`.
    pub(super) fn open(
        pid: u32,
        mut uprobes: Uprobes,
        places: Vec<Place>,
    ) -> Result<Events, UnpreparedError> {
        let mut functions = Vec::new();
        for place in places {
            let mut define = |offset, moment| {
                uprobes.define(&place.file, offset, moment).map_err(UnpreparedError::Refused)
            };
            // The return address is still on top of the stack there.
            let offset = place.offset + place.skip;
            let entry = define(offset, Moment::Entry)?;
            let leave = match place.function {
                Function::Free => None,
                _ => Some(define(offset, Moment::Return)?),
            };
            let callee = Callee { function: place.function, number: functions.len() as u32 };
            functions.push(Defined { place, callee, entry, leave });
        }
        let main = process::living_thread(pid).ok_or(UnpreparedError::Gone(pid))?;
        let moments = functions.iter().flat_map(|defined| [Some(defined.entry), defined.leave]);
        let first =
            moments.flatten().filter_map(|event| open_event(&without_records(event), main, None).transpose());
        let first = first.collect::<Result<_, _>>()?;
        let mut events = Events {
            pid,
            calls: Group::default(),
            stacks: Group::default(),
            _first: first,
            period: 0,
            cpus: online(),
            functions,
            moments: HashMap::default(),
            waiting: BinaryHeap::new(),
            _uprobes: uprobes,
        };
        threads::allow_many_files();
        events.open_calls()?;
        match events.calls.rings.iter().all(Option::is_none) {
            true => Err(UnpreparedError::Gone(pid)),
            false => Ok(events),
        }
    }

    fn open_calls(&mut self) -> Result<(), UnpreparedError> {
        let (mut calls, mut moments) = (Group::default(), HashMap::default());
        self.for_each_thread(
            &mut calls,
            |defined, wakeup| {
                let both = [(Some(defined.entry), Moment::Entry), (defined.leave, Moment::Return)];
                let opened = both.into_iter().filter_map(|(event, moment)| Some((event?, moment)));
                opened.map(|(event, moment)| (each_call(event, wakeup), (defined.callee, moment))).collect()
            },
            |id, about| {
                moments.insert(id, about);
            },
        )?;
        (self.calls, self.moments) = (calls, moments);
        Ok(())
    }

    /// The functions whose calls take much longer than others.
    pub(super) fn slow_functions(&self) -> Vec<String> {
        let slow = self.functions.iter().filter(|defined| defined.place.is_slow);
        slow.map(|defined| defined.place.name.clone()).collect()
    }

    /// Calls between two stacks; 0 while none are taken.
    pub(super) fn stack_period(&self) -> u64 {
        self.period
    }

    /// From now on, takes each `period`th stack.
    pub(super) fn set_stack_period(&mut self, period: u64) -> Result<(), UnpreparedError> {
        if period == self.period {
            return Ok(());
        }
        // Their rings go with them.
        self.stacks = Group::default();
        let mut stacks = Group::default();
        self.for_each_thread(
            &mut stacks,
            |defined, wakeup| match defined.place.function {
                Function::Free => Vec::new(),
                _ => vec![(some_stacks(defined.entry, period, STACK, wakeup), ())],
            },
            |_, ()| (),
        )?;
        (self.stacks, self.period) = (stacks, period);
        Ok(())
    }

    /// Opens events for all threads, on all CPUs and of all functions. A thread that starts meanwhile inherits some of the
    /// events, and may get all of them once more: of two records of one call, the second changes nothing.
    fn for_each_thread<T>(
        &self,
        group: &mut Group,
        events_of: impl Fn(&Defined, u32) -> Vec<(Attributes, T)>,
        mut each: impl FnMut(u64, T),
    ) -> Result<(), UnpreparedError> {
        let size = (ALL_RINGS / self.cpus.len().max(1)).next_power_of_two().clamp(LEAST_RING, LARGEST_RING);
        group.rings = self.cpus.iter().map(|_| None).collect();
        let mut known = HashSet::default();
        loop {
            let new: Vec<u32> =
                threads::list(self.pid).into_iter().filter(|tid| known.insert(*tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                for (ring, cpu) in group.rings.iter_mut().zip(&self.cpus) {
                    for (attributes, about) in
                        self.functions.iter().flat_map(|defined| events_of(defined, size as u32 / 4))
                    {
                        if group.others.len() >= MOST_EVENTS {
                            return Err(UnpreparedError::TooManyThreads);
                        }
                        if let Some(id) = open_one(&attributes, (tid, *cpu), (ring, size), &mut group.others)?
                        {
                            each(id, about);
                        }
                    }
                }
            }
        }
    }

    /// Reads all records up to the moment `until`, in the order of time. Later ones wait for the next call: by then all CPUs
    /// have written the records before them.
    pub(super) fn drain(&mut self, until: u64, mut each: impl FnMut(Happened<'_>)) {
        self.waiting.clear();
        let of_calls = self.calls.rings.len();
        let mut rings: Vec<&mut Ring> = Vec::new();
        let mut are_calls = Vec::new();
        for (index, ring) in self.calls.rings.iter_mut().chain(&mut self.stacks.rings).enumerate() {
            if let Some(ring) = ring {
                ring.refresh();
                rings.push(ring);
                are_calls.push(index < of_calls);
            }
        }
        // A record without a time is read first.
        let oldest = |ring: &mut Ring| ring.peek().map(|raw| records::time_of(raw).unwrap_or(0));
        for (index, ring) in rings.iter_mut().enumerate() {
            self.waiting.extend(oldest(ring).map(|at| Reverse((at, index))));
        }
        while let Some(Reverse((at, index))) = self.waiting.pop() {
            if at > until {
                break;
            }
            let ring = &mut rings[index];
            if let Some(raw) = ring.peek() {
                let happened = match (raw.kind == PERF_RECORD_SAMPLE, are_calls[index]) {
                    (true, true) => call(raw, &self.moments),
                    (true, false) => stack(raw, &self.functions, self.period),
                    (false, true) => lost(raw),
                    (false, false) => None,
                };
                if let Some(happened) = happened {
                    each(happened);
                }
            }
            ring.advance();
            self.waiting.extend(oldest(ring).map(|at| Reverse((at, index))));
        }
        rings.iter().for_each(|ring| ring.publish());
    }
}

/// Opens an event of a thread on a CPU that writes to a ring, which is made if there is none. Returns the event's number,
/// `None` if the thread has ended.
fn open_one(
    attributes: &Attributes,
    (tid, cpu): (u32, u32),
    (ring, size): (&mut Option<Ring>, usize),
    others: &mut Vec<OwnedFd>,
) -> Result<Option<u64>, UnpreparedError> {
    let Some(event) = open_event(attributes, tid, Some(cpu))? else { return Ok(None) };
    let id = attributes::id(&event).map_err(refused)?;
    match ring {
        Some(ring) => {
            attributes::set_output(&event, ring).map_err(refused)?;
            others.push(event);
        }
        None => *ring = Some(Ring::map(event, size).map_err(|(_, error)| refused(error))?),
    }
    Ok(Some(id))
}

/// Opens an event of a thread; `None` if the thread has ended.
fn open_event(
    attributes: &Attributes,
    tid: u32,
    cpu: Option<u32>,
) -> Result<Option<OwnedFd>, UnpreparedError> {
    match attributes::open(attributes, tid, cpu) {
        Ok(event) => Ok(Some(event)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: io::Error) -> UnpreparedError {
    UnpreparedError::Events(PerfRefused::new(error))
}

fn call<'a>(raw: Raw<'a>, moments: &HashMap<u64, (Callee, Moment)>) -> Option<Happened<'a>> {
    let call = Call::parse(raw)?;
    let (callee, moment) = *moments.get(&call.event)?;
    Some(match moment {
        Moment::Entry => Happened::Entered(callee, call),
        Moment::Return => Happened::Left(callee, call),
    })
}

fn stack<'a>(raw: Raw<'a>, functions: &[Defined], weight: u64) -> Option<Happened<'a>> {
    let record = records::parse(raw, false)?;
    let What::Sample(sample) = &record.what else { return None };
    let pc = sample.registers.as_ref()?.pc();
    let defined = functions.iter().find(|defined| defined.place.address == pc)?;
    Some(Happened::Sampled { callee: defined.callee, weight, record })
}

fn lost<'a>(raw: Raw<'a>) -> Option<Happened<'a>> {
    match records::parse(raw, false)?.what {
        What::Lost(calls) => Some(Happened::Lost { calls }),
        _ => None,
    }
}
