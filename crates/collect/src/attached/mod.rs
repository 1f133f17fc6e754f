//! Recording a process that runs already: what the crate `attach` sees of it, drained into a [`Recorder`].
//!
//! [`Attached`] is one such process. Its users are [`record()`], [`peek()`], the fallback for programs that we start
//! ([`descendants`]), and `stackglass top`.

pub(crate) mod descendants;
pub(crate) mod peek;
mod record;

pub use peek::{OutsidePeek, peek};
pub use record::{AttachError, Options, ends, record};

use crate::{ProcessImage, Recorder};
use stackglass_attach::{Attachment, Choice, Driver, Refusal, Stay, Stopped, Stream};
use stackglass_procfs::clock;
use stackglass_profile::{Nanos, Stacks};
use stackglass_wire::ProcessState;
use stackglass_wire::stream::{Reader, Trouble};
use std::sync::atomic::Ordering::Acquire;
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
    pub fn begin(pid: u32, delay: Duration, driver: Option<Driver>, stay: Stay) -> Result<Attached, Refusal> {
        Attached::begin_as(pid, delay, driver, stay, false)
    }

    /// The same; one of many processes, which `rests` while nothing moves in it.
    fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        stay: Stay,
        rests: bool,
    ) -> Result<Attached, Refusal> {
        let attachment = Attachment::begin_as(pid, delay, driver, stay, rests)?;
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

    /// Ends the looking; what was seen until then can still be drained.
    pub fn stop(&mut self) {
        self.attachment.stop();
    }
}

/// The reading end of a stream, and what became of it in a recording.
pub struct Drained {
    stream: Stream,
    reader: Box<Reader<'static>>,
    image: Option<ProcessImage>,
    broken: bool,
}

impl Drained {
    /// Takes the image up.
    pub fn new(stream: Stream, recorder: &mut Recorder) -> Drained {
        let image = ProcessImage::new(stream.control(), recorder);
        Drained {
            stream,
            reader: Box::new(Reader::new(stream.control(), stream.ring())),
            image,
            broken: false,
        }
    }

    /// Takes up what waits now.
    pub fn drain(&mut self, recorder: &mut Recorder) {
        let Some(image) = &mut self.image else { return };
        for _ in 0..self.reader.waiting() {
            if self.broken {
                break;
            }
            match self.reader.read() {
                Ok(Some(event)) => image.take(&event, recorder),
                Ok(None) => break,
                Err(Trouble::Event(_)) => {}
                Err(Trouble::Broken) => self.broken = true,
            }
        }
        image.refresh(self.stream.control(), recorder);
    }

    /// Forgets what was interned, after [`Recorder::clear_samples`].
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        if let Some(image) = &mut self.image {
            image.forget_stacks(before, recorder);
        }
    }

    /// The image is gone, when its stream says so.
    pub fn close_if_stopped(&mut self, recorder: &mut Recorder) -> bool {
        let stopped = self.stream.control().process_state() == ProcessState::Stopped;
        if stopped {
            self.drain(recorder);
            let at = self.stream.control().last_tick_ns.load(Acquire);
            if let Some(image) = &mut self.image {
                image.ended(Nanos(at), recorder);
            }
        }
        stopped
    }
}
