//! Records a process that is already running: drains what the crate `attach` samples into a [`Recorder`].
//!
//! [`Attached`] is one such process. It is used by [`record()`], by [`peek()`], by `stackglass top`, and for programs
//! that are sampled by ptrace (`descendants`).

pub(crate) mod descendants;
mod missed_children;
pub(crate) mod peek;
mod record;

pub use peek::{OutsidePeek, peek};
pub use record::{AttachError, Options, ends, record};
pub(crate) use record::{info, record_as_tasks, wait};

use crate::recording::StreamDrain;
use stackglass_attach::{AttachMode, Attachment, Choice, Driver, Refusal, Stopped, Stream};
use stackglass_procfs::clock;
use stackglass_profile::{Recorder, Stacks};
use stackglass_wire::{Counter, ProcessState};
use std::time::Duration;

/// A process that is being sampled. Dropping it detaches from the process.
pub struct Attached {
    attachment: Attachment,
    drained: Vec<Drained>,
}

impl Attached {
    /// Starts to sample all threads of a process, once in each `delay`.
    ///
    /// # Errors
    /// If the process does not exist or may not be sampled: which permission is missing, and how to get it.
    pub fn begin(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
    ) -> Result<Attached, Refusal> {
        Attached::begin_as(pid, delay, driver, mode, false)
    }

    /// Like [`Attached::begin`]. With `slow_when_idle`, the process is sampled less often while all its threads sleep.
    fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
        slow_when_idle: bool,
    ) -> Result<Attached, Refusal> {
        let attachment = Attachment::begin_as(pid, delay, driver, mode, slow_when_idle)?;
        Ok(Attached { attachment, drained: Vec::new() })
    }

    /// The driver that is used, and why.
    pub fn choice(&self) -> &Choice {
        self.attachment.choice()
    }

    /// Adds the samples since the last call to the recording. Call it at least every 50 ms: an exec of the process
    /// may wait for it.
    pub fn drain(&mut self, recorder: &mut Recorder) {
        self.attachment.help_exec();
        let new = self.attachment.new_streams();
        self.drained.retain_mut(|drained| {
            drained.drain(recorder);
            !drained.close_if_stopped(recorder)
        });
        for stream in new {
            if stream.was_never_there() {
                continue;
            }
            let mut drained = Drained::new(stream, self.choice().driver, recorder);
            drained.drain(recorder);
            self.drained.push(drained);
        }
    }

    /// Forgets which stacks were interned, after [`Recorder::clear_samples`].
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.drained.iter_mut().for_each(|drained| drained.forget_stacks(before, recorder));
    }

    /// The clock of samples, ns.
    pub fn now() -> u64 {
        clock::monotonic()
    }

    /// Why the process is not sampled any more; `None` while it is.
    pub fn stopped(&self) -> Option<Stopped> {
        self.attachment.stopped()
    }

    /// Detaches, calls `stand`, which stops this process until it is continued, and samples again. Otherwise a thread
    /// that is stopped for its stack would stay stopped as well.
    pub fn interrupt_for(&mut self, recorder: &mut Recorder, stand: impl FnOnce()) {
        self.stop();
        self.drain(recorder);
        stand();
        self.attachment.resume();
    }

    /// Samples the process again, after [`Attached::stop`].
    pub fn resume(&mut self) {
        self.attachment.resume();
    }

    /// Stops sampling. The samples taken so far can still be drained.
    pub fn stop(&mut self) {
        self.attachment.stop();
    }
}

/// Says how many system calls ptrace may have cut short, at the end of a recording.
fn remark_calls_cut_short(recorder: &mut Recorder) {
    let label = Counter::CallsCutShort.label();
    let counts = recorder.recording().processes.iter().filter_map(|process| process.counters.get(label));
    let calls: u64 = counts.sum();
    if calls > 0 {
        recorder.remark(format!(
            "{calls} system calls returned less than was asked for, or EINTR, when ptrace stopped their thread: the \
             program may have done less than without stackglass"
        ));
    }
}

/// The stream of one image of the process, and its image in the recording.
struct Drained {
    stream: Stream,
    /// `None` if the recording was full when the image began.
    drain: Option<StreamDrain>,
}

impl Drained {
    fn new(stream: Stream, driver: Driver, recorder: &mut Recorder) -> Drained {
        let way = match driver {
            Driver::Perf => "sampler: perf events on every thread, which stop none",
            Driver::Ptrace => "sampler: ptrace, which stops each running thread for its stack",
            Driver::Asleep => "sampler: reads threads that sleep, and stops none",
        };
        Drained { stream, drain: StreamDrain::from_outside(stream.control(), stream.ring(), way, recorder) }
    }

    /// Reads all events that are waiting now.
    fn drain(&mut self, recorder: &mut Recorder) {
        if let Some(drain) = &mut self.drain {
            drain.drain(recorder);
            drain.refresh(recorder);
        }
    }

    fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        if let Some(drain) = &mut self.drain {
            drain.forget_stacks(before, recorder);
        }
    }

    /// Ends the image once its stream has ended. Returns whether it has.
    fn close_if_stopped(&mut self, recorder: &mut Recorder) -> bool {
        let stopped = self.stream.control().process_state() == ProcessState::Stopped;
        if stopped {
            self.drain(recorder);
            if let Some(drain) = &mut self.drain {
                drain.end(recorder);
            }
        }
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::RecordingInfo;
    use std::sync::atomic::Ordering::{Relaxed, Release};

    #[test]
    fn a_malformed_event_and_a_damaged_stream_are_remarked() {
        let stream = Stream::new(std::process::id(), 1);
        let (control, ring) = (stream.control(), stream.ring());
        let mut recorder = Recorder::new(RecordingInfo::default());
        let mut drained = Drained::new(stream, Driver::Perf, &mut recorder);
        // An event of kind 255, two words long.
        ring[0].store(255 | 2 << 8, Relaxed);
        control.head.store(2, Release);
        drained.drain(&mut recorder);
        control.head.store(3 * ring.len() as u64, Release);
        control.counters.add(Counter::StreamFull, 1);
        drained.drain(&mut recorder);
        let remarks = &recorder.recording().info.remarks;
        let parts = ["sent malformed events", "damaged its stream", "was sampled faster"];
        assert!(remarks.iter().zip(parts).all(|(remark, part)| remark.contains(part)), "{remarks:?}");
        assert_eq!(remarks.len(), parts.len());
    }
}
