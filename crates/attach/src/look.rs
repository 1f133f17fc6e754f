//! Looking at one thread: did it run, does it sleep, and which way to its stack is open.

use super::Driver;
use super::calls;
use super::clock::{self, monotonic};
use super::perf_events::Event;
use super::ptrace::{self, News};
use super::sampler::{FETCH, Sampler};
use super::stream::Stack;
use stackglass_procfs::Status;
use stackglass_sampling::{Call, SchedStat, ThreadState, hash};
use stackglass_unwind::walk::{Cut, End};
use stackglass_unwind::{ProcessStack, Registers, StackMemory, Walk, Walker};
use stackglass_wire::{Counter, Event as Told, State, ThreadId, cut};

/// Rest of a sleeper that is told at once, ns: so much of it may be missing from a recording read meanwhile.
const TOLD_AT_ONCE: u64 = 20_000_000;
/// How long answers are waited for without sleeping, ns: waking up costs the same again.
const AT_ONCE: u64 = 60_000;
/// Longest sleep while an answer is awaited, and while any thread is traced, ns: a signal that another
/// thread of ours has fetched is missed by no more.
const ANSWER_SOON: u64 = 1_000_000;
const NEWS_SOON: u64 = 10_000_000;
/// How far the kernel's account of a running thread may lag behind, ns: one tick at 100 Hz.
const ACCOUNT_LAG: u64 = 10_000_000;

/// What the reader was last told about a thread's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Nothing yet.
    Nothing,
    /// A stack taken while it ran.
    Awake,
    /// The stack on which it sleeps.
    Asleep,
}

impl Sampler {
    /// Looks at a thread at a tick that began at `now`. False when it is gone.
    pub fn look(&mut self, index: usize, now: u64, longest: u64) -> bool {
        let tick = self.tick;
        let thread = &mut self.threads[index];
        thread.due = tick + 1;
        if thread.asked.is_some() {
            return true;
        }
        let Some(stat) = thread.files.stat() else { return false };
        self.outlet.count(Counter::Polls);
        if thread.known == Known::Asleep && stat == thread.stat {
            // It was given no processor at all: the same stack, for all ticks since the last look.
            thread.account.update_with(now, stat);
            thread.interval = (thread.interval * 2).min(longest);
            thread.due = tick + thread.interval;
            self.outlet.count(Counter::Unmoved);
            if self.threads[index].account.rest(false) >= TOLD_AT_ONCE {
                self.tell_rest(index, now);
            }
            return true;
        }
        thread.interval = 1;
        self.moved_at = tick;
        match thread.files.state() {
            ThreadState::Blocked { pc, sp, call } => {
                self.enter(index, now);
                self.take_asleep(index, now, (pc, sp), call);
                true
            }
            // Its samples come by themselves.
            ThreadState::Running if thread.event.is_some() => {
                thread.stat = stat;
                true
            }
            // It has not had a processor since it last stood: its stack is the same.
            ThreadState::Running if thread.known == Known::Awake && stat.turns == thread.stat.turns => true,
            ThreadState::Running => self.ask(index, None),
            ThreadState::Unknown => ptrace_is_alive(thread.tid),
        }
    }

    /// Enters the books of a thread that is off the processor, and tells what passed since.
    fn enter(&mut self, index: usize, now: u64) {
        let thread = &mut self.threads[index];
        let Some(stat) = thread.files.stat() else { return };
        thread.stat = stat;
        self.enter_stat(index, now, stat);
    }

    fn enter_stat(&mut self, index: usize, now: u64, stat: SchedStat) {
        let thread = &mut self.threads[index];
        thread.account.update_with(now, stat);
        if thread.known == Known::Asleep {
            // It slept there until it ran.
            thread.account.forget_waited();
            return self.tell_rest(index, now);
        }
        let waited = thread.account.take_waited();
        if waited > 0
            && thread.known == Known::Awake
            && self.outlet.repeat(thread.number, now, waited, State::Waiting)
        {
            thread.account.give_rest(waited);
        }
    }

    /// Gives the rest to the stack last told.
    fn tell_rest(&mut self, index: usize, now: u64) {
        let thread = &mut self.threads[index];
        let rest = thread.account.rest(false);
        if rest > 0
            && thread.known != Known::Nothing
            && self.outlet.repeat(thread.number, now, rest, State::Asleep)
        {
            thread.account.give_rest(rest);
        }
    }

    /// Reads the stack of a thread that sleeps at `place`, without disturbing it.
    fn take_asleep(&mut self, index: usize, now: u64, place: (u64, u64), call: Option<Call>) {
        let walk = self.walk(&Registers::new(place.0, place.1, None));
        let thread = &mut self.threads[index];
        if thread.files.stat() != Some(thread.stat) {
            // It woke up meanwhile: what was read may be of two moments. The next tick looks again.
            return;
        }
        let hidden = matches!(
            walk.end,
            End::Cut(Cut::RbpUnknown | Cut::RuleNotSupported | Cut::StackDidNotGrow | Cut::UnreadableStack)
        );
        let (tid, living) = (thread.tid, self.living);
        if hidden {
            let mut frames = std::mem::take(&mut self.frames);
            let known = self.sleep_stacks.lookup(living, tid, place, &mut frames);
            if let Some((len, cut)) = known {
                self.outlet.count(Counter::StacksRecognised);
                self.tell_asleep(index, now, &frames[..len], cut);
            }
            self.frames = frames;
            if known.is_some() {
                return;
            }
        }
        self.outlet.count(Counter::StacksAsleep);
        let frames = std::mem::take(&mut self.frames);
        self.tell_asleep(index, now, &frames[..walk.len], walk.end.code());
        self.frames = frames;
        if hidden
            && !self.sleep_stacks.was_tried(tid, place)
            && call.is_none_or(|call| calls::is_resumed(&call))
        {
            self.ask(index, Some(place));
        }
    }

    fn tell_asleep(&mut self, index: usize, now: u64, frames: &[u64], cut: u8) {
        let thread = &mut self.threads[index];
        let hash = hash(frames);
        if thread.known == Known::Asleep && thread.hash == hash {
            return self.tell_rest(index, now);
        }
        let rest = thread.account.rest(false);
        if self.outlet.sample(thread.number, now, rest, State::Asleep, Stack { frames, cut }) {
            thread.account.give_rest(rest);
            (thread.known, thread.hash) = (Known::Asleep, hash);
        }
    }

    fn tell_awake(&mut self, index: usize, now: u64, frames: &[u64], cut: u8) {
        // What it slept since the last look, nobody knows where, stays with the stack before.
        self.tell_rest(index, now);
        let thread = &mut self.threads[index];
        let pending = thread.account.pending();
        if self.outlet.sample(thread.number, now, pending, State::Awake, Stack { frames, cut }) {
            thread.account.give_pending();
            thread.known = Known::Awake;
        }
    }

    /// Asks a thread to stand. False when it is gone.
    fn ask(&mut self, index: usize, asleep: Option<(u64, u64)>) -> bool {
        let thread = &mut self.threads[index];
        if thread.refused {
            // It runs, and nobody can say where: that is time without a stack, and no sleep.
            let now = monotonic();
            self.enter(index, now);
            self.tell_awake(index, now, &[], cut::NOT_TAKEN);
            return true;
        }
        if self.driver == Driver::Perf && asleep.is_none() && !thread.by_stop {
            match Event::open(thread.tid, self.delay) {
                Ok(event) => {
                    thread.event = Some((event, thread.stat.ran));
                    return true;
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return false,
                Err(_) => thread.by_stop = true,
            }
        }
        if !thread.seized {
            match self.orders.seizing.seize(thread.tid) {
                Ok(()) => {
                    thread.seized = true;
                    // That took its time: it may sleep in a call by now that a stop would end.
                    if asleep.is_none() && thread.files.state() != ThreadState::Running {
                        return true;
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return false,
                // It may be ours since before an exec.
                Err(_) if ptrace::interrupt(thread.tid).is_ok() => {
                    thread.seized = true;
                    (thread.asked, thread.asked_asleep) = (Some(monotonic()), asleep);
                    return true;
                }
                Err(_) => {
                    thread.refused = true;
                    let number = thread.number;
                    let stack = Stack { frames: &[], cut: cut::NOT_TAKEN };
                    self.outlet.sample(number, monotonic(), 0, State::Awake, stack);
                    return true;
                }
            }
        }
        let counter = if asleep.is_some() { Counter::SignalsAsleep } else { Counter::SignalsRunning };
        self.outlet.count(counter);
        (thread.asked, thread.asked_asleep) = (Some(monotonic()), asleep);
        ptrace::interrupt(thread.tid).is_ok()
    }

    /// Hears what tracees have to tell, sleeping between, until `moment`.
    pub fn hear_until(&mut self, moment: u64) {
        loop {
            let (seized, asked) = self.hear();
            let now = monotonic();
            if now >= moment {
                return;
            }
            match (asked, seized) {
                (true, _) => clock::wait_for_news((moment - now).min(ANSWER_SOON)),
                (false, true) => clock::wait_for_news((moment - now).min(NEWS_SOON)),
                (false, false) => {
                    let soon = moment.min(now + NEWS_SOON);
                    clock::sleep_until(soon);
                }
            }
            if self.orders.stop.load(std::sync::atomic::Ordering::Acquire) {
                return;
            }
        }
    }

    /// Hears answers that come at once.
    pub fn hear_at_once(&mut self) {
        let until = monotonic() + AT_ONCE;
        while self.hear().1 && self.orders.processors > 1 && monotonic() < until {
            std::hint::spin_loop();
        }
    }

    /// Takes in all that tracees have to tell now. Whether there are tracees, and whether any owes an answer.
    fn hear(&mut self) -> (bool, bool) {
        let (mut seized, mut asked) = (false, false);
        let mut i = 0;
        while i < self.threads.len() {
            if self.threads[i].event.is_some() {
                self.take_samples(i);
            }
            let thread = &self.threads[i];
            if !thread.seized {
                i += 1;
                continue;
            }
            match self.news(thread.tid) {
                None => {
                    seized = true;
                    asked |= thread.asked.is_some();
                }
                Some(News::Ended) => {
                    self.let_go(i);
                    continue;
                }
                Some(news) => {
                    seized = true;
                    self.answer(i, news);
                }
            }
            i += 1;
        }
        self.hear_ends();
        (seized || !self.ending.is_empty(), asked)
    }

    /// Reaps threads that are about to end. An exec would wait for ever for one that is not reaped.
    fn hear_ends(&mut self) {
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain(|tid| match self.news(*tid) {
            Some(News::Ended) => {
                self.orders.seizing.ended(*tid);
                false
            }
            Some(News::Signal(signal)) => ptrace::resume(*tid, signal).is_ok(),
            Some(News::ProcessStopped) => ptrace::leave_stopped(*tid).is_ok(),
            Some(News::Stands) => ptrace::resume(*tid, 0).is_ok(),
            None => true,
        });
        self.ending = ending;
    }

    fn news(&self, tid: u32) -> Option<News> {
        match self.own_child && tid == self.pid {
            true => ptrace::news_of_own_child(tid),
            false => ptrace::news(tid),
        }
    }

    /// A tracee stands: its stack is taken if that was asked, and it goes on.
    fn answer(&mut self, index: usize, news: News) {
        let thread = &mut self.threads[index];
        let tid = thread.tid;
        let asked = thread.asked.take();
        // Whoever has ended meanwhile is told so by the next news.
        match news {
            // At once: a signal that is held here when we are killed would be lost.
            News::Signal(signal) => {
                if let Some(put_back) = thread.put_back.take() {
                    put_back.take_back(tid, signal);
                }
                drop(ptrace::resume(tid, signal));
            }
            News::ProcessStopped => drop(ptrace::leave_stopped(tid)),
            News::Stands | News::Ended => match asked {
                Some(asked) => self.take_standing(index, asked),
                None => drop(ptrace::resume(tid, 0)),
            },
        }
    }

    fn take_standing(&mut self, index: usize, asked: u64) {
        let tid = self.threads[index].tid;
        self.threads[index].put_back = None;
        let Ok(registers) = ptrace::registers(tid) else {
            let _ = ptrace::resume(tid, 0);
            return;
        };
        let walk = self.walk(&Registers::of_stopped(&registers));
        let in_call = interrupted_call(&registers);
        let now = monotonic();
        self.enter(index, now);
        if in_call == Some(Interrupted::ToTheProgram) {
            self.threads[index].put_back = PutBack::new(self.living, tid, &registers);
        }
        let _ = ptrace::resume(tid, 0);
        let thread = &mut self.threads[index];
        thread.account.add_waited(monotonic().saturating_sub(asked));
        let asleep_at = thread.asked_asleep.take();
        let frames = std::mem::take(&mut self.frames);
        let stack = &frames[..walk.len];
        match asleep_at {
            Some((pc, sp)) if (pc, sp) == (registers.rip, registers.rsp) || in_call.is_some() => {
                self.sleep_stacks.insert(self.living, tid, (pc, sp), stack, walk.end.code());
                self.tell_asleep(index, now, stack, walk.end.code());
            }
            _ if in_call.is_some() => self.tell_asleep(index, now, stack, walk.end.code()),
            _ => {
                self.outlet.count(Counter::StacksRunning);
                self.tell_awake(index, now, stack, walk.end.code());
            }
        }
        self.frames = frames;
    }

    /// Takes up what perf events have brought of a thread.
    fn take_samples(&mut self, index: usize) {
        let Some((mut event, before)) = self.threads[index].event.take() else { return };
        let stat = self.threads[index].files.stat();
        let mut too_deep = false;
        while let Some(sample) = event.next(&mut self.dump) {
            let mut dump = std::mem::take(&mut self.dump);
            let walk = self.walk_in(&sample.registers, &mut dump);
            too_deep |= dump.passed_end && walk.end == End::Cut(Cut::UnreadableStack);
            self.dump = dump;
            let stat = stat.unwrap_or(self.threads[index].stat);
            // The kernel's account lags behind by up to one of its ticks; two clocks also differ a little.
            let ran = (before + sample.ran).clamp(stat.ran, stat.ran + ACCOUNT_LAG);
            self.enter_stat(index, sample.at, SchedStat { ran, ..stat });
            self.outlet.count(Counter::StacksRunning);
            let frames = std::mem::take(&mut self.frames);
            self.tell_awake(index, sample.at, &frames[..walk.len], walk.end.code());
            self.frames = frames;
        }
        let thread = &mut self.threads[index];
        thread.by_stop |= too_deep;
        thread.event = (!too_deep).then_some((event, before));
    }

    /// Walks a stack of the process as it is now into `self.frames`.
    fn walk(&mut self, registers: &Registers) -> Walk {
        let mut bytes = std::mem::take(&mut self.stack);
        let mut stack = ProcessStack::new(self.living as i32, &mut bytes[..FETCH]);
        let walk = self.walk_in(registers, &mut stack);
        self.stack = bytes;
        walk
    }

    fn walk_in(&mut self, registers: &Registers, stack: &mut impl StackMemory) -> Walk {
        let mut walker = Walker {
            modules: self.modules.list(),
            table: Some(&self.modules.table),
            memory: &self.images,
            scratch: &mut self.scratch,
        };
        let walk = walker.walk(registers, stack, &mut self.frames);
        self.modules_soon |= walk.end == End::Cut(Cut::NoModule);
        walk
    }

    /// Tells what is left of a thread's time.
    pub fn settle(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        let (number, at) = (thread.number, thread.account.until());
        let (rest, pending) = (thread.account.rest(true), thread.account.pending());
        if thread.known == Known::Nothing {
            if rest + pending > 0 {
                let stack = Stack { frames: &[], cut: cut::ENDED };
                self.outlet.sample(number, at, pending, State::Awake, stack);
                self.outlet.repeat(number, at, rest, State::Asleep);
            }
        } else {
            if rest > 0 {
                self.outlet.repeat(number, at, rest, State::Asleep);
            }
            if pending > 0 {
                self.outlet.repeat(number, at, pending, State::Awake);
            }
        }
        thread.account.give_rest(rest);
        thread.account.give_pending();
    }

    /// The end of a thread.
    pub fn end(&mut self, index: usize) {
        self.settle(index);
        let thread = &self.threads[index];
        let (at, cpu) = (thread.account.until(), thread.account.given());
        self.outlet.push(&Told::ThreadEnd { thread: ThreadId(thread.number), at, cpu, flags: 0 });
    }
}

/// Who would see that a system call was interrupted by the stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Interrupted {
    /// Nobody: the kernel makes the call again.
    ByTheKernel,
    /// The program, by EINTR.
    ToTheProgram,
}

/// Whether the thread slept in a system call when it was made to stand.
fn interrupted_call(registers: &libc::user_regs_struct) -> Option<Interrupted> {
    if (registers.orig_rax as i64) < 0 {
        return None;
    }
    match registers.rax as i64 {
        // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK of include/linux/errno.h.
        -514..=-512 | -516 => Some(Interrupted::ByTheKernel),
        -4 => Some(Interrupted::ToTheProgram),
        _ => None,
    }
}

/// A thread that was stepped back to the `syscall` instruction of a call that had returned EINTR, as if it had been asked
/// a moment before it. A time-out begins anew.
#[derive(Clone, Copy)]
pub(super) struct PutBack {
    /// Its registers as the call had left them.
    before: libc::user_regs_struct,
}

impl PutBack {
    /// Steps it back, where the stop is all that can have interrupted the call and the call has done nothing.
    fn new(memory: u32, tid: u32, registers: &libc::user_regs_struct) -> Option<PutBack> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let at = registers.rip.wrapping_sub(2);
        let mut bytes = [0; 2];
        let read = stackglass_unwind::memory::read_process(memory as i32, at, &mut bytes);
        if read != 2 || bytes != SYSCALL || !calls::may_be_repeated(registers.orig_rax as i64) {
            return None;
        }
        // A signal whose handler is about to run has interrupted it as well.
        let status = Status::read(tid)?;
        if status.pending & !status.blocked & status.caught != 0 {
            return None;
        }
        let changed =
            libc::user_regs_struct { rax: registers.orig_rax, rip: at, orig_rax: u64::MAX, ..*registers };
        ptrace::set_registers(tid, changed).ok().map(|()| PutBack { before: *registers })
    }

    /// A signal is about to reach the thread. Where it has not made its call yet and the signal has a handler, that came
    /// just after the look for pending ones: the call has returned EINTR after all.
    fn take_back(self, tid: u32, signal: i32) {
        let Ok(now) = ptrace::registers(tid) else { return };
        let stands_there = now.rip == self.before.rip.wrapping_sub(2) && now.orig_rax == u64::MAX;
        let caught = |status: Status| status.caught >> (signal - 1).clamp(0, 63) & 1 == 1;
        if stands_there && Status::read(tid).is_some_and(caught) {
            let _ = ptrace::set_registers(tid, self.before);
        }
    }
}

/// Whether a thread whose place cannot be read is there at all.
fn ptrace_is_alive(tid: u32) -> bool {
    Status::read(tid).is_some_and(|status| !status.has_ended())
}
