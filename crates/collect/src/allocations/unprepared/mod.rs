//! Records allocations of a running process that nobody prepared: the kernel tells of each call of its allocator (uprobes).
//!
//! Nothing is loaded into the process, and no thread is stopped. `functions` finds its allocators, `events` opens events
//! for all its threads, `stack_period` says how many stacks are taken, `calls` makes allocations and frees of calls and returns, and
//! `counts` adds them up. Each call costs the process about a microsecond for each event: on its way in, and, if it returns a block, on its
//! way out. Only root may do this. Processes that it could harm are refused (`allowed`).

mod allowed;
mod calls;
mod counts;
mod events;
mod functions;
mod stack_period;

use super::drain::resident_bytes;
use crate::perf_sampler::RunningImage;
use crate::recording::begin::beginning_now;
use crate::session::signals::Signals;
use calls::{Calls, Outcome, SampledCall};
use counts::{Allocation, Counts};
use events::{Events, Happened};
use functions::Place;
use stack_period::period_for;
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_attach::{Driver, Refusal, access};
use stackglass_perf::records::What;
use stackglass_perf::uprobe::Uprobes;
use stackglass_procfs::clock::monotonic;
use stackglass_procfs::process::{self, ImageKey};
use stackglass_profile::{
    AllocatingProcess, End, MemoryPoint, Nanos, Recorder, Recording, RecordingInfo, StackId, ThreadNumber,
};
use std::io;
use std::time::{Duration, Instant};

/// Time between two reads of the rings.
const PAUSE: Duration = Duration::from_millis(5);
/// Records younger than this, ns, wait for the next read.
const UNORDERED: u64 = 1_000_000;
/// Time for which calls are counted before the first stack is taken, and before the number of stacks is changed.
const WINDOW: Duration = Duration::from_millis(200);
/// A process has loaded its libraries after this time.
const LOADED: Duration = Duration::from_millis(500);
/// Time between two points of memory over time.
const POINTS: Duration = Duration::from_millis(50);

/// Why allocations of an unprepared process cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum UnpreparedError {
    /// The kernel allows uprobes only to root.
    #[error("uprobes are refused: {0}")]
    Refused(io::Error),
    /// The events cannot be opened.
    #[error("{0}")]
    Events(PerfRefused),
    /// It may not be looked at.
    #[error(transparent)]
    Access(#[from] Refusal),
    /// No symbol of its files names a known allocator.
    #[error(
        "no symbol of process {0} names a known allocator, such as `malloc`: do not strip its executable, or put the crate's allocator into it"
    )]
    NoAllocator(u32),
    /// So many events would be needed.
    #[error("the process has too many threads: each needs at least 20 events on each CPU")]
    TooManyThreads,
    /// Events at returns of functions are not safe with this kernel.
    #[error(
        "Linux {0} ends processes with a system call filter when a function with a uprobe returns: use Linux 6.14 or newer"
    )]
    Kernel(String),
    /// The process has a shadow stack, which events at returns may not agree with.
    #[error("process {0} has a shadow stack, with which uprobes at returns are not safe")]
    ShadowStack(u32),
    /// The process would get system calls of the kernel's own code.
    #[error(
        "process {0} redirects its system calls, as Wine does, with which uprobes at returns are not safe"
    )]
    Redirects(u32),
    /// It has ended.
    #[error("process {0} has ended")]
    Gone(u32),
    /// It called no function of its allocator.
    #[error("process {0} allocated nothing in this time")]
    Nothing(u32),
    /// Signals cannot be received.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
}

/// Records allocations of process `pid` for `duration`, or until Ctrl-C or the end of the process. The result has no names yet.
///
/// # Errors
/// [`UnpreparedError`].
pub fn record(pid: u32, duration: Duration, writer: String) -> Result<Recording, UnpreparedError> {
    let access = access::check(pid, Driver::Perf);
    if let Err(
        refusal @ (Refusal::NoProcess { .. }
        | Refusal::Ended { .. }
        | Refusal::Kernel { .. }
        | Refusal::Own { .. }),
    ) = access
    {
        return Err(refusal.into());
    }
    // Without this right, no other one is enough.
    let uprobes = Uprobes::open().map_err(UnpreparedError::Refused)?;
    access?;
    let image = ImageKey::read(pid).ok_or(UnpreparedError::Gone(pid))?;
    allowed::check(pid)?;
    let places = find_functions(pid)?;
    let signals = Signals::block_as_onlooker().map_err(UnpreparedError::Signals)?;
    let command = process::arguments(pid);
    let mut events = Events::open(pid, uprobes, places)?;
    let mut window = Window::default();
    std::thread::sleep(WINDOW);
    events.drain(u64::MAX, |happened| window.calls += u64::from(matches!(happened, Happened::Entered(..))));
    window.adapt(&mut events)?;
    // What was called before is not recorded.
    let info = RecordingInfo { end: Some(End::Running), ..beginning_now(command, &writer) };
    let mut state = State::new(pid, info.start.0);
    let mut recorder = Recorder::new(info);
    let clock = Instant::now();
    let mut next_point = Duration::ZERO;
    while let Some(left) = duration.checked_sub(clock.elapsed()).filter(|left| !left.is_zero()) {
        if signals.next(left.min(PAUSE)).is_some_and(|signal| crate::attached::ends(signal.number)) {
            break;
        }
        state.drain(&mut events, monotonic().saturating_sub(UNORDERED), &mut recorder);
        window.calls += std::mem::take(&mut state.entered);
        if window.began.elapsed() >= WINDOW {
            window.adapt(&mut events)?;
        }
        if clock.elapsed() >= next_point {
            next_point = clock.elapsed() + POINTS;
            state.add_point();
        }
        match ImageKey::read(pid) {
            Some(now) if now == image => {}
            Some(_) => {
                recorder.remark("the recording ends where the process started another program (exec)");
                break;
            }
            None => break,
        }
    }
    let end = monotonic();
    state.drain(&mut events, end, &mut recorder);
    if let slow @ [_, ..] = &events.slow_functions()[..] {
        recorder.remark(format!(
            "{}: the kernel could follow these functions only in single step: each call took some 25 µs longer meanwhile",
            slow.join(", ")
        ));
    }
    // The process goes on without breakpoints before names are looked up.
    drop(events);
    recorder.info_mut().wall = Nanos(end.saturating_sub(recorder.recording().info.start.0));
    state.finish(end, &mut recorder)?;
    Ok(recorder.into_recording())
}

/// Finds the functions of its allocators. A process that has just started has not loaded them yet.
fn find_functions(pid: u32) -> Result<Vec<Place>, UnpreparedError> {
    let start = Instant::now();
    loop {
        match functions::find(pid) {
            Err(UnpreparedError::NoAllocator(_)) if start.elapsed() < LOADED => std::thread::sleep(PAUSE),
            found => return found,
        }
    }
}

/// Calls in a while.
struct Window {
    began: Instant,
    calls: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { began: Instant::now(), calls: 0 }
    }
}

impl Window {
    /// Sets the period of stacks by the calls of this window, and begins the next one.
    fn adapt(&mut self, events: &mut Events) -> Result<(), UnpreparedError> {
        let rate = self.calls as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
        if let Some(period) = period_for(rate, events.stack_period()) {
            events.set_stack_period(period)?;
        }
        *self = Window::default();
        Ok(())
    }
}

/// What is known of the process so far.
struct State {
    pid: u32,
    began: u64,
    image: RunningImage,
    calls: Calls<StackId>,
    counts: Counts,
    lost_calls: u64,
    /// Calls since they were last asked for.
    entered: u64,
    memory: Vec<MemoryPoint>,
}

impl State {
    fn new(pid: u32, began: u64) -> State {
        State {
            pid,
            began,
            image: RunningImage::new(pid, began),
            calls: Calls::new(),
            counts: Counts::default(),
            lost_calls: 0,
            entered: 0,
            memory: Vec::new(),
        }
    }

    fn drain(&mut self, events: &mut Events, until: u64, recorder: &mut Recorder) {
        events.drain(until, |happened| self.apply(happened, recorder));
    }

    fn apply(&mut self, happened: Happened<'_>, recorder: &mut Recorder) {
        let (outcome, tid, at) = match happened {
            Happened::Lost { calls } => {
                self.lost_calls += calls;
                return;
            }
            Happened::Sampled { callee, weight, record } => {
                let What::Sample(sample) = &record.what else { return };
                if record.pid == self.pid
                    && let Some(stack) = self.image.stack_of_caller(sample, record.at, recorder)
                {
                    self.calls.sample(record.tid, SampledCall { callee, stack, weight });
                }
                return;
            }
            Happened::Entered(_, call) | Happened::Left(_, call)
                if call.pid != self.pid || call.at < self.began =>
            {
                return;
            }
            Happened::Entered(callee, call) => {
                self.entered += 1;
                (self.calls.enter(call.tid, callee, call.arguments), call.tid, call.at)
            }
            Happened::Left(callee, call) => {
                (self.calls.leave(call.tid, callee, call.result), call.tid, call.at)
            }
        };
        match outcome {
            Some(Outcome::Allocated { block, size, replaces, function, sampled }) => {
                let thread = self.image.thread(tid, at, recorder).unwrap_or(ThreadNumber(0));
                self.counts.allocate(Allocation {
                    at,
                    tid,
                    block,
                    size,
                    replaces,
                    function,
                    thread,
                    sampled,
                });
            }
            Some(Outcome::Freed { block }) => self.counts.free(block),
            None => {}
        }
    }

    fn add_point(&mut self) {
        let resident_bytes = resident_bytes(self.pid).unwrap_or(0);
        self.memory.push(MemoryPoint {
            clock: Nanos(monotonic()),
            live_bytes: self.counts.live_bytes(),
            resident_bytes,
        });
    }

    fn finish(mut self, end: u64, recorder: &mut Recorder) -> Result<(), UnpreparedError> {
        let process = self.image.index(recorder).ok_or(UnpreparedError::Gone(self.pid))?;
        if self.counts.is_empty() {
            return Err(match process::is_alive(self.pid) {
                true => UnpreparedError::Nothing(self.pid),
                false => UnpreparedError::Gone(self.pid),
            });
        }
        let mut remark = |line: String| recorder.remark(line);
        remark("recorded while the program ran: what it allocated before has no record".into());
        if self.lost_calls > 0 {
            remark(format!(
                "{} calls of the allocator have no record, because they came too fast: what is alive may be less than is shown",
                self.lost_calls
            ));
        }
        if self.counts.unfollowed > 0 {
            remark(format!(
                "{} blocks were too many to be followed, and count as freed",
                self.counts.unfollowed
            ));
        }
        if self.counts.without_address > 0 {
            remark("blocks of posix_memalign count as freed at once".into());
        }
        let (lost, peak_at) = (self.lost_calls, self.counts.peak_at);
        let (groups, sampling) = self.counts.finish(process);
        let allocations = &mut recorder.recording_mut().allocations;
        allocations.groups.extend(groups);
        allocations.processes.push(AllocatingProcess {
            process,
            begin: Nanos(self.began),
            end: Nanos(end),
            sampling,
            peak_at: Nanos(peak_at.max(self.began)),
            lost,
            without_stack: 0,
            memory: self.memory,
        });
        Ok(())
    }
}
