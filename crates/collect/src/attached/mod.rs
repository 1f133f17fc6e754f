//! Recording a process that runs already: what the crate `attach` sees of it, drained into a [`Recorder`].
//!
//! [`Attached`] is one such process. Its users are [`record()`], [`peek()`], the fallback for programs that we start
//! ([`descendants`]), and `stackglass top`.

pub(crate) mod descendants;
pub(crate) mod peek;
mod record;

pub use peek::{OutsidePeek, peek};
pub use record::{AttachError, Options, ends, record};

use crate::Recorder;
use crate::recording::StreamDrain;
use stackglass_attach::{AttachMode, Attachment, Choice, Driver, Refusal, Stopped, Stream};
use stackglass_procfs::clock;
use stackglass_profile::Stacks;
use stackglass_wire::ProcessState;
use std::time::Duration;

/// A process that is looked at. When it is dropped, the process is let go.
pub struct Attached {
    attachment: Attachment,
    drained: Vec<Drained>,
}

impl Attached {
    /// Begins to look at all threads of a process, once in each `delay`.
    ///
    /// # Errors
    /// When it is gone, or may not be looked at; what permission is missing and how to get it.
    pub fn begin(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
    ) -> Result<Attached, Refusal> {
        Attached::begin_as(pid, delay, driver, mode, false)
    }

    /// The same; one of many processes, which `rests` while nothing moves in it.
    fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
        rests: bool,
    ) -> Result<Attached, Refusal> {
        let attachment = Attachment::begin_as(pid, delay, driver, mode, rests)?;
        Ok(Attached { attachment, drained: Vec::new() })
    }

    /// How running threads are made to show their stacks, and why so.
    pub fn choice(&self) -> &Choice {
        self.attachment.choice()
    }

    /// Takes up what was seen since the last call.
    /// To be called every 50 ms at least: an exec of the process may wait for it.
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
            let mut drained = Drained::new(stream, recorder);
            drained.drain(recorder);
            self.drained.push(drained);
        }
    }

    /// Forgets which stacks were seen, after [`Recorder::clear_samples`].
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.drained.iter_mut().for_each(|drained| drained.forget_stacks(before, recorder));
    }

    /// The clock of samples, ns.
    pub fn now() -> u64 {
        clock::monotonic()
    }

    /// Why nothing more is to come, once that is so.
    pub fn stopped(&self) -> Option<Stopped> {
        self.attachment.stopped()
    }

    /// Lets the process go, stops ourselves as Ctrl-Z does (`stand` returns when somebody continues us), and looks
    /// again: a thread of it that we have asked to stand would stand as long as we do.
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

    /// Ends the looking; what was seen until then can still be drained.
    pub fn stop(&mut self) {
        self.attachment.stop();
    }
}

/// The stream of one image of the process, and what the recording knows of it.
struct Drained {
    stream: Stream,
    /// `None`: the recording was full when the image began.
    drain: Option<StreamDrain>,
}

impl Drained {
    fn new(stream: Stream, recorder: &mut Recorder) -> Drained {
        Drained { stream, drain: StreamDrain::new(stream.control(), stream.ring(), recorder) }
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
    use stackglass_profile::About;
    use stackglass_wire::Counter;
    use std::sync::atomic::Ordering::{Relaxed, Release};

    #[test]
    fn a_malformed_event_and_a_damaged_stream_are_remarked() {
        let stream = Stream::new(std::process::id(), 1);
        let (control, ring) = (stream.control(), stream.ring());
        let mut recorder = Recorder::new(About::default());
        let mut drained = Drained::new(stream, &mut recorder);
        // An event of kind 255, two words long.
        ring[0].store(255 | 2 << 8, Relaxed);
        control.head.store(2, Release);
        drained.drain(&mut recorder);
        control.head.store(3 * ring.len() as u64, Release);
        control.counters.add(Counter::StreamFull, 1);
        drained.drain(&mut recorder);
        let remarks = &recorder.recording().about.remarks;
        let parts = ["sent malformed events", "damaged its stream", "was sampled faster"];
        assert!(remarks.iter().zip(parts).all(|(remark, part)| remark.contains(part)), "{remarks:?}");
        assert_eq!(remarks.len(), parts.len());
    }
}
