//! Which poll blocks its worker: the tasks that are polled are looked at again, 100 ms after the first look.
//!
//! A task that is polled in both looks may have returned in between, as one that yields in a loop does. Two facts show that it
//! has not:
//!
//! - The thread did not reach the first instruction of the function that polls tasks of this type (a hardware breakpoint).
//! - The thread slept all the time: the kernel's counters of its CPU time did not change, and it still is at the same place of its
//!   stack.
//!
//! In both cases, the second look must find the thread in a poll of this task. Time in which the thread waited for a CPU does
//! not count: a program on a busy machine is not at fault.

use crate::core_image;
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_awaits::Poll;
use stackglass_perf::breakpoint::Breakpoint;
use stackglass_proc_text::{SchedStat, ThreadState};
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::{stacks, threads};
use stackglass_procfs::threads::Files;
use stackglass_procfs::{ImageKey, Status, clock};
use stackglass_profile::Nanos;
use stackglass_profile::task_dump::PollingThread;
use std::time::{Duration, Instant};

/// Longest time until the second look, on a machine that is busy with other work.
const LONGEST: Duration = Duration::from_secs(1);
/// Without breakpoints.
const LONGEST_WITHOUT: Duration = Duration::from_millis(250);
const STEP: Duration = Duration::from_millis(10);
/// Most threads that are looked at again.
const MOST: usize = 256;

/// A task that is polled, and what is known of that poll.
pub(super) struct PolledTask {
    /// Index of the task.
    pub task: usize,
    /// The thread that polls it.
    pub tid: u32,
    /// Addresses of its frames above the function that polls, innermost first.
    pub lookups: Vec<u64>,
    /// How long this poll lasts at least.
    pub polled_for: Option<Nanos>,
    /// The second look found it polled, too.
    pub seen_again: bool,
}

/// A thread between the two looks.
struct Watched {
    /// Index of the task among those that are polled.
    index: usize,
    poll: Poll,
    tid: u32,
    files: Files,
    breakpoint: Option<Breakpoint>,
    /// Counters of the kernel, and when they were read.
    start: Option<SchedStat>,
    since: u64,
    /// How long the poll lasts, if nothing ended it.
    lasts: u64,
    /// The stack pointer with which it sleeps.
    sleeps_at: Option<u64>,
    /// It has ended, or somebody has stopped it.
    is_stopped: bool,
}

/// Looks again at tasks that are polled, if there are some. Returns how long the process was held up.
pub(super) fn check_again(
    pid: u32,
    modules: &[LoadedModule],
    polled: &mut [PolledTask],
    polls: &[(usize, Poll)],
) -> Duration {
    let key = ImageKey::read(pid);
    let mut watched: Vec<Watched> = polls
        .iter()
        .take(MOST)
        .map(|(index, poll)| Watched::new(pid, *index, poll, polled[*index].tid))
        .collect();
    if watched.is_empty() {
        return Duration::ZERO;
    }
    let begin = Instant::now();
    loop {
        std::thread::sleep(STEP);
        watched.iter_mut().for_each(Watched::advance);
        if watched.iter().all(|watched| watched.is_done(begin.elapsed())) {
            break;
        }
    }
    let options = frozen::Options { wait: Duration::from_secs(1), ..frozen::Options::default() };
    let Ok(process) = FrozenProcess::stop(pid, &options) else { return Duration::ZERO };
    let stopped = Instant::now();
    if ImageKey::read(pid) != key {
        return stopped.elapsed();
    }
    let image = core_image::from_frozen(&process);
    let of_threads = threads::stacks(&image, modules);
    for watched in &watched {
        let state = of_threads.iter().find(|thread| image.threads[thread.index].tid == watched.tid);
        let Some(thread) = state else { continue };
        let frames = stacks::frames(&image, modules, &[(thread.registers, thread.end)]);
        let Some(frames) = frames.first() else { continue };
        let Some(frame) = watched.poll.frame_in(&image, frames) else { continue };
        let task = &mut polled[watched.index];
        task.seen_again = true;
        if watched.has_not_returned(thread.registers.rsp()) && watched.lasts > 0 {
            task.polled_for = Some(Nanos(watched.lasts));
            // The first stack may be of an earlier poll.
            task.lookups = frames[..frame].iter().map(|frame| frame.lookup).collect();
        }
    }
    let pause = process.pause().whole + stopped.elapsed();
    drop(process);
    pause
}

impl Watched {
    fn new(pid: u32, index: usize, poll: &Poll, tid: u32) -> Watched {
        let mut files = Files::new(pid, tid);
        let breakpoint = Breakpoint::set(tid, poll.function.start).ok();
        let start = files.stat();
        let since = clock::monotonic();
        let poll = poll.clone();
        Watched {
            index,
            poll,
            tid,
            files,
            breakpoint,
            start,
            since,
            lasts: 0,
            sleeps_at: None,
            is_stopped: false,
        }
    }

    /// Reads the counters of the kernel.
    fn advance(&mut self) {
        let state = Status::read(self.tid).map_or(0, |status| status.state);
        self.sleeps_at = match self.files.state() {
            ThreadState::Asleep(sleep) => Some(sleep.place.sp),
            _ => None,
        };
        let counters = self.start.zip(self.files.stat());
        let Some((start, now)) = counters.filter(|_| matches!(state, b'R' | b'S' | b'D')) else {
            (self.lasts, self.is_stopped) = (0, true);
            return;
        };
        let elapsed = clock::monotonic().saturating_sub(self.since);
        self.lasts = match (state, &self.breakpoint) {
            // A wait for a CPU that still lasts is not counted yet.
            (b'R', Some(_)) => now.ran.saturating_sub(start.ran),
            (_, Some(_)) => elapsed.saturating_sub(now.waited.saturating_sub(start.waited)),
            (b'R', None) => 0,
            _ if now == start => elapsed,
            _ => {
                (self.start, self.since) = (Some(now), clock::monotonic());
                0
            }
        };
    }

    /// Whether more time would not tell more.
    fn is_done(&self, elapsed: Duration) -> bool {
        let enough = Duration::from_nanos(PollingThread::BLOCKS.0);
        let longest = if self.breakpoint.is_some() { LONGEST } else { LONGEST_WITHOUT };
        let was_reached = self.breakpoint.as_ref().is_some_and(|point| point.was_reached() != Some(false));
        self.is_stopped
            || elapsed >= longest
            || elapsed >= enough && (self.lasts >= PollingThread::BLOCKS.0 || was_reached)
    }

    /// Whether the poll that the second look has found, with this stack pointer, is one that lasts since the beginning.
    fn has_not_returned(&self, sp: u64) -> bool {
        match &self.breakpoint {
            Some(breakpoint) => breakpoint.was_reached() == Some(false),
            // The stop itself wakes the thread, so its counters tell no more.
            None => self.lasts > 0 && self.sleeps_at == Some(sp),
        }
    }
}
