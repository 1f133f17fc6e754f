//! What is told to the reader, and what is remembered about it.
//!
//! An event that finds the stream full is lost, so nothing here counts as told before the push succeeded:
//! time that could not be told stays in the books and is told later.

use crate::roster::{Known, Record};
use stackglass_host::task::TaskText;
use stackglass_wire::stream::Writer;
use stackglass_wire::{Event, State, ThreadId};

/// A stack to be told.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    /// Look-up addresses, leaf first.
    pub frames: &'a [u64],
    /// Why it is not complete, 0 if it is.
    pub cut: u8,
    /// The async task.
    pub task: u64,
}

/// The writing end with the rules of telling.
pub struct Outlet {
    writer: Writer<'static>,
    /// Looks at tasks are told, and no thread's time.
    walltime: bool,
    /// When the last of them was.
    last: u64,
}

impl Outlet {
    /// An outlet into `writer`.
    pub fn new(writer: Writer<'static>, walltime: bool) -> Outlet {
        Outlet { writer, walltime, last: 0 }
    }

    /// Any event; false when there was no room.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        self.writer.push(event)
    }

    /// Makes sure that the reader knows the thread; false when it does not.
    fn announce(&mut self, thread: &mut Record) -> bool {
        if !thread.announced {
            thread.announced = self.writer.push(&Event::ThreadStart {
                thread: ThreadId(thread.number),
                tid: thread.tid,
                at: thread.began,
                name: thread.name,
            });
        }
        thread.announced
    }

    /// A stack taken while the thread ran: gets all pending time.
    pub fn awake(&mut self, thread: &mut Record, at: u64, stack: Stack<'_>) {
        let time = thread.account.pending();
        if self.sample(thread, at, time, State::Awake, stack, 1) {
            thread.account.give_pending();
            thread.known = Known::Awake;
        }
    }

    /// A stack taken while the thread ran, for so much of the pending time.
    pub fn awake_for(&mut self, thread: &mut Record, at: u64, time: u64, stack: Stack<'_>) {
        let time = time.min(thread.account.pending());
        if self.sample(thread, at, time, State::Awake, stack, 1) {
            thread.account.give(time);
            thread.known = Known::Awake;
        }
    }

    /// So much of the pending time was spent in the call whose stack was told last.
    pub fn in_call(&mut self, thread: &mut Record, at: u64, time: u64) {
        let time = time.min(thread.account.pending());
        if time > 0 && thread.known == Known::Asleep && self.repeat(thread, at, time, State::Awake) {
            thread.account.give(time);
        }
    }

    /// More time run, without a new stack to give it to: goes to the last one taken while it ran.
    pub fn ran_on(&mut self, thread: &mut Record, at: u64) {
        let time = thread.account.pending();
        if time > 0 && thread.known == Known::Awake && self.repeat(thread, at, time, State::Awake) {
            thread.account.give_pending();
        }
    }

    /// The stack on which the thread sleeps: gets the rest. Told again only when it differs.
    pub fn asleep(&mut self, thread: &mut Record, at: u64, stack: Stack<'_>) {
        let hash = hash(stack.frames) ^ stack.task.rotate_left(32);
        if thread.known == Known::Asleep && thread.hash == hash {
            self.rest(thread, at, false);
            return;
        }
        let time = thread.account.rest(false);
        if self.sample(thread, at, time, State::Asleep, stack, 1) {
            thread.account.give_rest(time);
            thread.known = Known::Asleep;
            thread.hash = hash;
        }
    }

    /// Pending time for which no stack is to be had.
    pub fn without_stack(&mut self, thread: &mut Record, at: u64, cut: u8) {
        let time = thread.account.pending();
        let stack = Stack { frames: &[], cut, task: 0 };
        if time > 0 && self.sample(thread, at, time, State::Awake, stack, 0) {
            thread.account.give_pending();
            thread.known = Known::NoStack;
        }
    }

    /// More sleeping time for the stack last told; kept back while there is none.
    pub fn rest(&mut self, thread: &mut Record, at: u64, all: bool) {
        let time = thread.account.rest(all);
        if time > 0 && thread.known != Known::Nothing && self.repeat(thread, at, time, State::Asleep) {
            thread.account.give_rest(time);
        }
    }

    /// `time` of the rest was spent waiting for a processor, on the stack last told.
    pub fn waited(&mut self, thread: &mut Record, at: u64, time: u64) {
        if time > 0 && self.repeat(thread, at, time, State::Waiting) {
            thread.account.give_rest(time);
            thread.waited.1 += time;
        }
    }

    /// The thread is gone: what is left goes to its last stack. It ends when it was last known to live.
    pub fn end(&mut self, thread: &mut Record) {
        let at = thread.account.until().max(if self.walltime { self.last } else { 0 });
        if !self.announce(thread) {
            return;
        }
        let time = thread.account.pending();
        if self.walltime {
            // Its time was never looked at.
        } else if thread.known == Known::Nothing {
            let rest = thread.account.rest(true);
            let stack = Stack { frames: &[], cut: stackglass_wire::cut::ENDED, task: 0 };
            if self.sample(thread, at, time, State::Awake, stack, 0) {
                thread.account.give_pending();
                thread.known = Known::NoStack;
                if rest > 0 && self.repeat(thread, at, rest, State::Asleep) {
                    thread.account.give_rest(rest);
                }
            }
        } else {
            self.rest(thread, at, true);
            // What ran and was not seen belongs to no stack of a sleep.
            let unseen = Stack { frames: &[], cut: stackglass_wire::cut::ENDED, task: 0 };
            let told = time > 0
                && match thread.known {
                    Known::Asleep => self.sample(thread, at, time, State::Awake, unseen, 0),
                    _ => self.repeat(thread, at, time, State::Awake),
                };
            if told {
                thread.account.give_pending();
            }
        }
        self.writer.push(&Event::ThreadEnd {
            thread: ThreadId(thread.number),
            at,
            cpu: thread.account.given(),
            flags: thread.ever_blocked as u64,
        });
    }

    /// A look of a wall-time profile.
    pub fn of_task(&mut self, thread: &mut Record, at: u64, time: u64, stack: Stack<'_>, hits: u32) -> bool {
        self.last = at;
        self.sample(thread, at, time, State::Task, stack, hits)
    }

    /// What a task is called; false when there was no room.
    pub fn task_start(&mut self, thread: &mut Record, at: u64, task: u64, text: &TaskText) -> bool {
        self.announce(thread)
            && self.writer.push(&Event::TaskStart {
                thread: ThreadId(thread.number),
                at,
                task,
                line: text.line,
                text: text.used(),
                name_len: text.name_len,
                file_len: text.file_len,
            })
    }

    /// The thread has a new name.
    pub fn rename(&mut self, thread: &mut Record, at: u64, name: [u8; 16]) {
        let event = Event::ThreadRename { thread: ThreadId(thread.number), at, name };
        if !thread.announced || self.writer.push(&event) {
            thread.name = name;
        }
    }

    fn sample(
        &mut self,
        thread: &mut Record,
        at: u64,
        time: u64,
        state: State,
        stack: Stack<'_>,
        hits: u32,
    ) -> bool {
        self.announce(thread)
            && self.writer.push(&Event::Sample {
                thread: ThreadId(thread.number),
                at,
                time,
                task: stack.task,
                state,
                cut: stack.cut,
                hits,
                frames: stack.frames,
            })
    }

    fn repeat(&mut self, thread: &mut Record, at: u64, time: u64, state: State) -> bool {
        self.writer.push(&Event::Repeat { thread: ThreadId(thread.number), at, time, state })
    }
}

/// FNV-1a over words: enough to tell two stacks of one thread apart.
fn hash(frames: &[u64]) -> u64 {
    frames.iter().fold(0xcbf2_9ce4_8422_2325, |h, frame| {
        (h ^ frame).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}
