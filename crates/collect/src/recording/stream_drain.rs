//! Reads one stream of events into a recording: the file of a guest, the stream of an attached process, or that of the
//! own process. Malformed events and lost ones lead to the same remarks in all three.

use super::event_translator::EventTranslator;
use super::grants;
use super::waits::WaitAnswers;
#[cfg(feature = "launch")]
use stackglass_profile::{Nanos, ProcessIndex};
use stackglass_profile::{Recorder, Stacks};
use stackglass_wire::stream::{ReadError, Reader};
use stackglass_wire::{ControlPage, Counter, ImageFlags, ProcessState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "launch")]
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::Ordering::Relaxed;

/// One stream and the process image that writes it.
pub(crate) struct StreamDrain {
    control: &'static ControlPage,
    reader: Box<Reader<'static>>,
    words: u64,
    translator: EventTranslator,
    /// The sampler is not in the process: what that process grants says nothing of it.
    is_outside: bool,
    /// Positions or lengths in the stream are wrong: nothing more is read from it.
    damaged: bool,
}

impl StreamDrain {
    /// Starts at the first event that a sampler inside the process ever wrote. `None` if the recording is full.
    pub(crate) fn new(
        control: &'static ControlPage,
        ring: &'static [AtomicU64],
        recorder: &mut Recorder,
    ) -> Option<StreamDrain> {
        let translator = EventTranslator::new(control, recorder)?;
        let reader = Box::new(Reader::new(control, ring));
        Some(StreamDrain {
            control,
            reader,
            words: ring.len() as u64,
            translator,
            is_outside: false,
            damaged: false,
        })
    }

    /// The same for a sampler outside the process, which takes stacks in this way.
    #[cfg(feature = "launch")]
    pub(crate) fn from_outside(
        control: &'static ControlPage,
        ring: &'static [AtomicU64],
        way: &'static str,
        recorder: &mut Recorder,
    ) -> Option<StreamDrain> {
        let drain = StreamDrain::new(control, ring, recorder)?;
        recorder.process_mut(drain.translator.index()).counters.insert(way.to_owned(), 1);
        Some(StreamDrain { is_outside: true, ..drain })
    }

    /// Reads all events that are waiting now. Returns how full the stream was, 0 to 1.
    pub(crate) fn drain(&mut self, recorder: &mut Recorder) -> f64 {
        let waiting = self.reader.waiting();
        // No more than what is waiting now: the writer may be as fast as this loop.
        for _ in 0..waiting {
            if self.damaged {
                break;
            }
            match self.reader.read() {
                Ok(Some(event)) => self.translator.apply(&event, recorder),
                Ok(None) => break,
                Err(ReadError::Event(_)) => {
                    self.remark(recorder, "sent malformed events, which were skipped")
                }
                Err(ReadError::Broken) => {
                    self.damaged = true;
                    self.remark(recorder, "damaged its stream; its samples up to then are kept");
                }
            }
        }
        self.translator.add_answered(recorder);
        waiting as f64 / self.words as f64
    }

    /// Copies the counters of the stream into the recording, and remarks on what went wrong.
    pub(crate) fn refresh(&self, recorder: &mut Recorder) {
        self.translator.refresh(self.control, recorder);
        if !self.is_outside {
            grants::note(recorder.process_mut(self.translator.index()), self.control.image.load(Relaxed));
        }
        if self.control.process_state() == ProcessState::Unable {
            self.remark(recorder, "could not be sampled: the sampler inside it failed to start");
        }
        if self.control.image.load(Relaxed) & ImageFlags::NO_TIMERS != 0 {
            self.remark(
                recorder,
                "was interrupted by signals also inside system calls, some of which return less than requested then, because \
                 timers may not be used under a seccomp filter, nor before Linux 5.9",
            );
        }
        if self.control.image.load(Relaxed) & ImageFlags::SIGNAL_LOST != 0 {
            self.remark(
                recorder,
                "has installed its own handler for SIGURG; since then, its running threads were not sampled",
            );
        }
        if self.control.image.load(Relaxed) & ImageFlags::OWN_RIGHTS != 0 {
            self.remark(
                recorder,
                "has changed the rights of one of its threads; it was not sampled from then on, because the C library ends programs \
                 whose threads have different rights",
            );
        }
        if self.control.counters.get(Counter::StreamFull) != 0 {
            self.remark(
                recorder,
                "was sampled faster than the samples could be read: some were lost; try a longer delay",
            );
        }
    }

    /// Await stacks come later, as answers to the sampler's questions.
    pub(crate) fn await_answers(&mut self, answers: Arc<WaitAnswers>) {
        self.translator.await_answers(answers);
    }

    /// Forgets which stacks were interned `before`, after [`Recorder::clear_samples`].
    pub(crate) fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.translator.forget_stacks(before, recorder);
    }

    fn remark(&self, recorder: &mut Recorder, what: &str) {
        let process = &recorder.recording().processes[self.translator.index().0 as usize];
        let name = process.exe.rsplit('/').next().unwrap_or_default();
        let line = format!("process {} ({name}) {what}", process.pid);
        recorder.remark(line);
    }
}

#[cfg(feature = "launch")]
impl StreamDrain {
    /// The control page of the stream.
    pub(crate) fn control(&self) -> &ControlPage {
        self.control
    }

    /// The index of the process image in the recording.
    pub(crate) fn index(&self) -> ProcessIndex {
        self.translator.index()
    }

    /// Marks the image as ended, at its last tick.
    pub(crate) fn end(&mut self, recorder: &mut Recorder) {
        self.translator.ended(Nanos(self.control.last_tick_ns.load(Acquire)), recorder);
    }
}
