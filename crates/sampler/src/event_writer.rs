//! Writes events into the stream.
//!
//! An event that finds the stream full is lost, so state changes only after a push succeeded: time that could not be pushed
//! stays in the thread's account and is pushed later.

use crate::threads::table::{ThreadEntry, ThreadHeader};
use stackglass_host::task::TaskText;
use stackglass_sampling::{SampleSink, Stack};
use stackglass_wire::stream::Writer;
use stackglass_wire::{Event, State, ThreadName};

/// The writing end of the stream.
pub struct EventWriter {
    writer: Writer<'static>,
    /// A wall-time profile: samples are of tasks, and threads get no time.
    is_walltime: bool,
    /// When the last one of them was.
    last_walltime_sample: u64,
}

/// The events of one thread.
pub struct ThreadEvents<'a> {
    writer: &'a mut Writer<'static>,
    header: &'a mut ThreadHeader,
}

impl EventWriter {
    /// Writes into `writer`.
    pub fn new(writer: Writer<'static>, is_walltime: bool) -> EventWriter {
        EventWriter { writer, is_walltime, last_walltime_sample: 0 }
    }

    /// Pushes any event; false if there is no room.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        self.writer.push(event)
    }

    /// The sink for one thread's samples.
    pub fn of<'a>(&'a mut self, header: &'a mut ThreadHeader) -> ThreadEvents<'a> {
        ThreadEvents { writer: &mut self.writer, header }
    }

    /// Pushes a sample of a wall-time profile, which asked `hits` times for the stack; false if there is no room.
    pub fn push_walltime_sample(
        &mut self,
        header: &mut ThreadHeader,
        at: u64,
        time: u64,
        stack: Stack<'_>,
        hits: u32,
    ) -> bool {
        self.last_walltime_sample = at;
        self.of(header).push_sample(at, time, State::Task, stack, hits)
    }

    /// Pushes a task's name; false if there is no room.
    pub fn push_task(&mut self, header: &mut ThreadHeader, at: u64, task: u64, text: &TaskText) -> bool {
        self.of(header).announce()
            && self.writer.push(&Event::TaskStart {
                thread: header.number,
                at,
                task,
                line: text.line,
                text: text.used(),
                name_len: text.name_len,
                file_len: text.file_len,
            })
    }

    /// Renames a thread.
    pub fn rename(&mut self, header: &mut ThreadHeader, at: u64, name: ThreadName) {
        let event = Event::ThreadRename { thread: header.number, at, name };
        if !header.is_announced || self.writer.push(&event) {
            header.name = name;
        }
    }

    /// Ends a thread at the moment when it was last known to live. What is left of its time goes to its last stack.
    pub fn end(&mut self, thread: &mut ThreadEntry) {
        if !self.of(&mut thread.header).announce() {
            return;
        }
        let mut at = thread.time.account.until();
        if self.is_walltime {
            at = at.max(self.last_walltime_sample);
        } else {
            thread.time.finish(&mut self.of(&mut thread.header));
        }
        self.writer.push(&Event::ThreadEnd {
            thread: thread.header.number,
            at,
            cpu: thread.time.account.assigned(),
            flags: thread.ever_blocked as u64,
        });
    }
}

impl ThreadEvents<'_> {
    /// Makes sure that the reader knows the thread; false if there is no room.
    fn announce(&mut self) -> bool {
        let header = &mut *self.header;
        if !header.is_announced {
            header.is_announced = self.writer.push(&Event::ThreadStart {
                thread: header.number,
                tid: header.tid,
                at: header.began,
                name: header.name,
            });
        }
        header.is_announced
    }
}

impl SampleSink for ThreadEvents<'_> {
    fn push_sample(&mut self, at: u64, time: u64, state: State, stack: Stack<'_>, hits: u32) -> bool {
        let Stack { frames, cut, task } = stack;
        let thread = self.header.number;
        self.announce()
            && self.writer.push(&Event::Sample { thread, at, time, task, state, cut, hits, frames })
    }

    fn push_repeat(&mut self, at: u64, time: u64, state: State) -> bool {
        self.writer.push(&Event::Repeat { thread: self.header.number, at, time, state })
    }
}
