//! Looking at one thread: did it run, does it sleep, and which of the two ways to its stack is open.

use crate::calls::Doubtful;
use crate::kept::About;
use crate::memory::Memory;
use crate::outlet::Stack;
use crate::roster::{Errand, Known, Record};
use crate::sampler::{Found, Sampler};
use crate::tasks::Confinement;
use stackglass_host::mailbox::SampleHeader;
use stackglass_host::{SlotIndex, SignalToken, UNWINDER, alternate, restart, signal, system};
use stackglass_sampling::{Call, ThreadState};
use stackglass_unwind::memory::read_own;
use stackglass_unwind::walk::{Cut, End};
use stackglass_unwind::{ProcessStack, Registers, mapping};
use stackglass_wire::{Counter, cut};

/// CPU time that a signal and its handler may have cost since a stack was taken, ns.
const HANDLER: u64 = 15_000;
/// What it costs to change threads twice and to take the timer's interrupt, ns; in virtual machines it is dear.
const CHANGING: u64 = 30_000;
/// A signal not answered for so long is asked after, ns.
const ANSWER_DUE: u64 = 100_000_000;
/// A thread that blocks the signal is asked again after this, ns.
const BLOCKED_FOR: u64 = 500_000_000;
/// Whether system calls are forbidden to a thread is asked again after this, ns.
const CONFINEMENT_EVERY: u64 = 20_000_000;
/// A thread on a stack without room for a walk is signalled again after this, ns.
const NO_ROOM_FOR: u64 = 100_000_000;
/// A thread that has slept for so long, ns, has no mailbox that waits for its next tick.
const LONG_AGO: u64 = 50_000_000;
/// Bytes of a sleeper's stack fetched at once.
const FETCH: usize = 4096;

impl Sampler {
    /// Looks at one thread at a tick that began at `now`; sleepers are looked at again after at most `longest`
    /// ticks.
    pub(crate) fn poll(&mut self, index: SlotIndex, now: u64, longest: u8) -> Found {
        let tid = self.memory.roster.get(index).tid;
        let Some(cpu) = system::thread_cpu(tid) else {
            // It told its last CPU time before it went.
            self.hear_news(system::now());
            self.scan_soon = true;
            self.let_go(index);
            return Found::Gone;
        };
        let Sampler { memory, tick, .. } = self;
        let next = *tick + 1;
        memory.roster.set_due(index, next);
        let thread = memory.roster.get(index);
        // Where the clock has moved, both clocks are to be of the same moment.
        let now = if cpu == thread.account.cpu() { now } else { system::now() };
        let passed = thread.account.update(now, cpu);
        if passed.ran > 0 {
            thread.ran_at = now;
            self.take_tick(index, now);
            if self.memory.roster.get(index).known != Known::Nothing {
                self.begin_ticking(index);
            }
            if self.memory.roster.get(index).ticking.is_on() && !self.stands_a_signal(index, now) {
                self.end_ticking(index);
            }
        }
        let Sampler { memory, outlet, tick, .. } = self;
        let thread = memory.roster.get(index);

        if thread.errand.is_some() {
            // A signal wakes who sleeps: one that has not been answered waits for a processor, mostly.
            let ready =
                thread.known == Known::Awake && passed.ran == 0 && self.look(index) == ThreadState::Running;
            self.tell_waiting(index, now, ready);
            let thread = self.memory.roster.get(index);
            self.outlet.rest(thread, now, false);
            self.look_for_held_back(index, now, passed.ran);
            self.ask_after(index, now);
            return Found::Other;
        }
        let moved = passed.ran > if thread.fresh { HANDLER } else { 0 };
        thread.fresh = false;
        if !moved && thread.known == Known::Asleep {
            // It did not run at all: the same stack as before, for all ticks since the last poll.
            outlet.rest(thread, now, false);
            thread.interval = thread.interval.saturating_mul(2).min(longest);
            let next = *tick + thread.interval as u64;
            memory.roster.set_due(index, next);
            if self.tick_is_long_ago(index) {
                self.wait_no_longer(index);
            }
            return Found::Unmoved;
        }
        thread.interval = 1;
        if thread.known == Known::Asleep {
            // It slept there until it ran.
            outlet.rest(thread, now, false);
        }
        self.tell_waiting(index, now, false);
        let thread = self.memory.roster.get(index);
        let busy = moved && thread.known == Known::Awake && passed.ran >= passed.elapsed / 8 * 7;
        // A signal that meets a thread which has just gone to sleep may end its call, unless that can be put back.
        let place = if busy && restart::may_put_back() { ThreadState::Running } else { self.look(index) };
        // It runs now on another processor, or it ran all the time but for our own turn: then we took its processor.
        let fair = moved
            && (system::thread_cpu(tid) != Some(cpu)
                || passed.elapsed.saturating_sub(passed.ran) <= self.own_turn + CHANGING);
        let ticking = self.memory.roster.get(index).ticking.is_on();
        match place {
            // The kernel's own ticks find it in its code; here only time in calls is looked for.
            ThreadState::Running | ThreadState::Unknown if ticking && moved && !self.owes_calls(index) => {}
            ThreadState::Running | ThreadState::Unknown if fair => self.send(index, now, None),
            // It has run, and now waits for a processor where the kernel took it away: at the end of a system call
            // more often than chance would have it. What it ran goes to the stack taken before.
            ThreadState::Running | ThreadState::Unknown if moved => {
                let thread = self.memory.roster.get(index);
                self.outlet.ran_on(thread, now);
            }
            // Waiting for a processor where it was.
            ThreadState::Running => {
                self.tell_waiting(index, now, true);
                let thread = self.memory.roster.get(index);
                self.outlet.rest(thread, now, false);
            }
            ThreadState::Blocked { pc, sp, call } => self.take_asleep(index, now, cpu, (pc, sp), call),
            ThreadState::Unknown => {
                let thread = self.memory.roster.get(index);
                self.outlet.rest(thread, now, false);
            }
        }
        Found::Other
    }

    /// Of the time that a thread last seen running did not run, tells what it waited for a processor: all of it
    /// when it is `ready` and has not run, else what the kernel has counted.
    fn tell_waiting(&mut self, index: SlotIndex, now: u64, ready: bool) {
        let thread = self.memory.roster.get(index);
        let rest = thread.account.rest(false);
        if rest == 0 || thread.known != Known::Awake {
            return;
        }
        let waited = if ready {
            rest
        } else {
            let (before, told) = thread.waited;
            self.waited(index).map_or(0, |all| all.saturating_sub(before + told)).min(rest)
        };
        self.outlet.waited(self.memory.roster.get(index), now, waited);
    }

    /// Where the kernel says the thread is.
    pub(crate) fn look(&mut self, index: SlotIndex) -> ThreadState {
        if !self.can_look {
            return ThreadState::Unknown;
        }
        let mut text = [0u8; 256];
        let n = self.read_about(index, About::Place, &mut text);
        ThreadState::parse(&text[..n.min(256)])
    }

    /// Reads the stack of a thread that sleeps at `place`; its clock showed `cpu` before it was found there.
    pub(crate) fn take_asleep(
        &mut self,
        index: SlotIndex,
        now: u64,
        cpu: u64,
        place: (u64, u64),
        call: Option<Call>,
    ) {
        let (polled, text) = self.polled(index);
        let period = self.period();
        let Memory { roster, frames, stack, scratch, sleep_cache, .. } = &mut *self.memory;
        let thread = roster.get(index);
        let counters = &self.control.counters;
        // SAFETY: written when the memory was mapped.
        let scratch = unsafe { scratch.assume_init_mut() };
        let registers = Registers::new(place.0, place.1, None);
        // By our own thread: the first one may have left the process, and its number then has no memory.
        let mut reader = ProcessStack::new(self.tid as i32, &mut stack[..FETCH]);
        let walk = UNWINDER.walk(&registers, &mut reader, scratch, frames);
        let hidden = matches!(
            walk.end,
            End::Cut(Cut::RbpUnknown | Cut::RuleNotSupported | Cut::StackDidNotGrow | Cut::UnreadableStack)
        );
        let recognised =
            if hidden { sleep_cache.lookup(index.0.into(), place, read_own, stack, frames) } else { None };
        if system::thread_cpu(thread.tid) != Some(cpu) {
            // It woke up meanwhile: whatever was read may be of two moments. The next tick looks again.
            return;
        }
        let (len, cut) = match recognised {
            Some(known) => {
                counters.add(Counter::StacksRecognised, 1);
                known
            }
            None => {
                let number = thread.number;
                if hidden && self.may_signal(index, now, call) && !self.memory.tried_before(number, place) {
                    return self.send(index, now, Some(place));
                }
                counters.add(Counter::StacksAsleep, 1);
                (walk.len, walk.end.code())
            }
        };
        if cut != 0 {
            counters.add(Counter::Cut, 1);
            self.modules_soon |= walk.end == End::Cut(Cut::NoModule);
        }
        self.tell_task(index, polled, text);
        let chosen = self.take_chosen();
        if let Some(chosen) = chosen.filter(|chosen| !self.is_of(index, *chosen, polled.task)) {
            return self.tell_of_waiting(now, chosen);
        }
        let Memory { roster, frames, .. } = &mut *self.memory;
        let stack = Stack { frames: &frames[..len], cut, task: polled.task };
        match chosen {
            Some(chosen) => self.wall.tell(&mut self.outlet, roster.get(index), now, chosen, stack),
            None => {
                let thread = roster.get(index);
                self.outlet.asleep(thread, now, stack);
                if thread.ticking.is_on() {
                    let time = beyond_ticks(thread, period);
                    self.outlet.in_call(thread, now, time);
                }
            }
        }
    }

    /// Whether a thread that sleeps in `call` may be signalled: only where the kernel goes on with the call by itself.
    fn may_signal(&mut self, index: SlotIndex, now: u64, call: Option<Call>) -> bool {
        let Memory { roster, tasks, .. } = &mut *self.memory;
        let thread = roster.get(index);
        // In a page fault there is no call.
        let (number, arguments) = call.map_or((-1, [0; 6]), |call| (call.number, call.arguments));
        let is_socket = |descriptor| tasks.is_socket(thread.tid, descriptor);
        !self.signal_lost
            && thread.errand.is_none()
            && now >= thread.blocked_until
            && restart::restarts_by_itself(number, arguments, is_socket)
    }

    /// Whether the handler may run on this thread: it makes system calls, and it needs room on the stack.
    pub(crate) fn stands_a_signal(&mut self, index: SlotIndex, now: u64) -> bool {
        let own = self.tid;
        let Memory { roster, tasks, .. } = &mut *self.memory;
        let thread = roster.get(index);
        if now >= thread.confinement_due {
            thread.confinement_due = now + CONFINEMENT_EVERY;
            let ours = || tasks.confinement(own).unwrap_or_default();
            let allowed = |its: Confinement| its.is_free() || its.is_no_stricter_than(ours());
            // What cannot be read is not known to be allowed.
            thread.confined = !tasks.confinement(thread.tid).is_some_and(allowed);
        }
        !thread.confined && alternate::may_signal(thread.alternate as usize)
    }

    /// Sends the signal with a mailbox.
    pub(crate) fn send(&mut self, index: SlotIndex, now: u64, asleep_at: Option<(u64, u64)>) {
        let chosen = self.take_chosen();
        let counters = &self.control.counters;
        let Memory { roster, .. } = &mut *self.memory;
        let thread = roster.get(index);
        if now < thread.blocked_until {
            counters.add(Counter::Blocked, 1);
            return self.outlet.without_stack(thread, now, cut::BLOCKED);
        }
        if self.signal_lost {
            return self.outlet.without_stack(thread, now, cut::NOT_TAKEN);
        }
        if !self.stands_a_signal(index, now) {
            self.control.counters.add(Counter::NotSignalled, 1);
            return self.outlet.without_stack(self.memory.roster.get(index), now, cut::NOT_TAKEN);
        }
        let counters = &self.control.counters;
        let Some((mailbox, generation)) = self.memory.hand_out(&self.guest.mailboxes) else {
            return counters.add(Counter::NoMailbox, 1);
        };
        let pool = &self.guest.mailboxes[mailbox];
        let thread = self.memory.roster.get(index);
        let ticket = SignalToken { mailbox: mailbox as u8, slot: index, generation };
        match signal::send(thread.tid, ticket) {
            Ok(()) => {
                thread.errand = Some(Errand {
                    mailbox: mailbox as u8,
                    generation,
                    sent: now,
                    asleep_at,
                    ran: 0,
                    ask_at: self.delay / 2,
                    held_back: false,
                    chosen,
                });
                self.memory.holders[mailbox] = index.0 as u32 + 1;
                let which =
                    if asleep_at.is_some() { Counter::SignalsAsleep } else { Counter::SignalsRunning };
                counters.add(which, 1);
            }
            Err(errno) => {
                pool.take_back(generation);
                if errno == libc::ESRCH {
                    counters.add(Counter::ThreadGone, 1);
                } else {
                    counters.add(Counter::QueueFull, 1);
                    self.outlet.without_stack(thread, now, cut::NOT_TAKEN);
                }
            }
        }
    }

    /// Takes in every letter that is written.
    pub(crate) fn collect(&mut self) {
        for mailbox in 0..self.memory.holders.len() {
            if let Some(index) = self.memory.holder(mailbox) {
                self.take_letter(index, mailbox);
            }
        }
    }

    fn take_letter(&mut self, index: SlotIndex, mailbox: usize) -> bool {
        let period = self.period();
        let errand = self.memory.roster.get(index).errand;
        let Some(errand) = errand.filter(|errand| errand.mailbox as usize == mailbox) else { return false };
        let guest = self.guest;
        let pool = &guest.mailboxes[mailbox];
        let Some((letter, frames)) = pool.read(errand.generation) else { return false };
        self.tell_task(index, letter.polled, letter.text);
        if let Some(chosen) = errand.chosen {
            let stack = Stack { frames, cut: letter.cut, task: letter.polled.task };
            self.tell_chosen(index, errand.sent, chosen, stack);
        }
        let Memory { roster, sleep_cache, stack, holders, instructions, tasks, .. } = &mut *self.memory;
        let thread = roster.get(index);
        let counters = &self.control.counters;
        thread.alternate = letter.alternate;
        if letter.no_room {
            counters.add(Counter::NotSignalled, 1);
            thread.blocked_until = errand.sent + NO_ROOM_FOR;
            if errand.chosen.is_none() {
                self.outlet.without_stack(thread, errand.sent, cut::NOT_TAKEN);
            }
            thread.errand = None;
            thread.fresh = true;
            pool.release(errand.generation);
            holders[mailbox] = 0;
            return true;
        }
        counters.add(Counter::StacksRunning, 1);
        if letter.cut != 0 && !errand.held_back {
            counters.add(Counter::Cut, 1);
            self.modules_soon |= letter.cut == Cut::NoModule as u8;
        }
        let taken = Stack { frames, cut: letter.cut, task: letter.polled.task };
        match errand.asleep_at {
            None if errand.held_back || errand.chosen.is_some() => {}
            // What lies elsewhere is told by the kernel's ticks.
            None if thread.ticking.is_on() && thread.known != Known::Nothing => {
                if frames.first().is_some_and(|pc| instructions.is_behind_call(*pc)) {
                    let time = beyond_ticks(thread, period);
                    self.outlet.awake_for(thread, errand.sent, time, taken);
                }
            }
            None if frames.first().is_some_and(|pc| instructions.is_behind_call(*pc))
                && !thread.calls.believes(
                    Doubtful {
                        time: thread.account.pending(),
                        given: thread.account.given(),
                        cpu: thread.account.cpu(),
                        whole: thread.whole,
                        delay: self.delay,
                    },
                    || tasks.system_time(thread.tid),
                ) =>
            {
                counters.add(Counter::CallsDoubted, 1);
            }
            None => self.outlet.awake(thread, errand.sent, taken),
            Some(place) => {
                if errand.chosen.is_none() {
                    self.outlet.asleep(thread, errand.sent, taken);
                }
                sleep_cache.insert(index.0.into(), place, frames, letter.cut, read_own, stack);
            }
        }
        thread.errand = None;
        thread.fresh = true;
        pool.release(errand.generation);
        holders[mailbox] = 0;
        self.learn_bounds(index, &letter);
        true
    }

    /// Takes in the stack that the kernel's tick has left, if there is one: it stands for a delay, as each tick since the last
    /// one. Its books must be kept up to now.
    pub(crate) fn take_tick(&mut self, index: SlotIndex, now: u64) {
        if !self.memory.roster.get(index).ticking.is_on() {
            return;
        }
        let time = self.count_hits(index) * self.period();
        let Some((mailbox, generation)) = self.stack_has_come(index) else {
            return self.wait_for_stack(index);
        };
        let guest = self.guest;
        let pool = &guest.mailboxes[mailbox];
        if let Some((letter, frames)) = pool.read(generation) {
            self.tell_task(index, letter.polled, letter.text);
            let counters = &self.control.counters;
            counters.add(Counter::SignalsRunning, 1);
            let thread = self.memory.roster.get(index);
            thread.alternate = letter.alternate;
            thread.fresh = true;
            thread.ticking.hits = 0;
            if letter.no_room {
                // The kernel would not ask for room first.
                counters.add(Counter::NotSignalled, 1);
                thread.blocked_until = now + NO_ROOM_FOR;
            } else {
                counters.add(Counter::StacksRunning, 1);
            }
            if letter.cut != 0 {
                counters.add(Counter::Cut, 1);
                self.modules_soon |= letter.cut == Cut::NoModule as u8;
            }
            let stack = Stack { frames, cut: letter.cut, task: letter.polled.task };
            self.outlet.awake_for(thread, now, time, stack);
            self.learn_bounds(index, &letter);
        }
        pool.release(generation);
        self.memory.holders[mailbox] = 0;
        if now < self.memory.roster.get(index).blocked_until {
            self.end_ticking(index);
        } else {
            self.wait_for_stack(index);
        }
    }

    /// Whether a thread that the kernel ticks has run for so long without a tick that it was in calls; or has no
    /// stack at all yet.
    fn owes_calls(&mut self, index: SlotIndex) -> bool {
        let period = self.period();
        let thread = self.memory.roster.get(index);
        thread.known == Known::Nothing || beyond_ticks(thread, period) >= period
    }

    /// Whether a thread has slept for so long that its mailbox serves others better.
    fn tick_is_long_ago(&mut self, index: SlotIndex) -> bool {
        let thread = self.memory.roster.get(index);
        thread.ticking.is_on() && thread.account.until().saturating_sub(thread.ran_at) > LONG_AGO
    }

    /// What the handler found out about the thread's stack.
    fn learn_bounds(&mut self, index: SlotIndex, letter: &SampleHeader) {
        if letter.bounds_missing
            && let Some((low, high, grows)) = stack_of(letter.sp, letter.thread_pointer)
        {
            self.guest.slot(index).set_stack(low, high, grows);
        }
    }

    /// A signal is out and the thread has `ran` since: does it block the signal for a while, as in handlers on small
    /// stacks? Then what it ran has no stack: the answer will come from where it ends to block it.
    fn look_for_held_back(&mut self, index: SlotIndex, now: u64, ran: u64) {
        let Memory { roster, tasks, .. } = &mut *self.memory;
        let thread = roster.get(index);
        let Some(errand) = &mut thread.errand else { return };
        errand.ran += ran;
        if !errand.held_back {
            if errand.ran < errand.ask_at {
                return;
            }
            // In the kernel a thread may run for long without answering; it is not asked all the time.
            errand.ask_at = errand.ran.saturating_mul(2);
            let Some(signal) = signal::installed() else { return };
            if tasks.blocks(thread.tid, signal) != Some(true) {
                return;
            }
            errand.held_back = true;
            self.control.counters.add(Counter::Blocked, 1);
        }
        self.outlet.without_stack(thread, now, cut::BLOCKED);
    }

    /// A signal is out: has it been out for too long, because the thread blocks it?
    pub(crate) fn ask_after(&mut self, index: SlotIndex, now: u64) {
        let Memory { roster, tasks, holders, .. } = &mut *self.memory;
        let thread = roster.get(index);
        let Some(errand) = thread.errand else { return };
        if now.saturating_sub(errand.sent) < ANSWER_DUE {
            return;
        }
        let counters = &self.control.counters;
        if signal::installed().and_then(|s| tasks.blocks(thread.tid, s)) == Some(false) {
            // It has not had a processor, or is in the middle of something that cannot be interrupted.
            counters.add(Counter::TimedOut, 1);
            thread.errand = Some(Errand { sent: now, ..errand });
            return;
        }
        let mailbox = errand.mailbox as usize;
        if !self.guest.mailboxes[mailbox].take_back(errand.generation) {
            return;
        }
        holders[mailbox] = 0;
        thread.errand = None;
        thread.ever_blocked = true;
        thread.blocked_until = now + BLOCKED_FOR;
        counters.add(Counter::Blocked, 1);
        self.outlet.without_stack(thread, now, cut::BLOCKED);
    }

    /// Takes a thread's mailbox back because the thread is gone or sampling ends.
    pub(crate) fn recall(&mut self, index: SlotIndex) {
        let Some(errand) = self.memory.roster.get(index).errand else { return };
        let mailbox = errand.mailbox as usize;
        if self.take_letter(index, mailbox) {
            return;
        }
        // Where the handler is at work just now, the mailbox is handed out again once it is done.
        self.guest.mailboxes[mailbox].take_back(errand.generation);
        self.memory.holders[mailbox] = 0;
        self.memory.roster.get(index).errand = None;
    }
}

/// Of the time that a thread ran and that was not given to a stack, what its ticks have had the time to tell of and did not:
/// it was spent in calls. The next tick may be due only in a period, and comes to be known later.
fn beyond_ticks(thread: &Record, period: u64) -> u64 {
    thread.account.pending().saturating_sub((2 + thread.ticking.hits) * period)
}

/// The part of the stack around `sp` that stays mapped as long as the thread runs on it: up to the thread
/// pointer on stacks made by the C library (which keeps the thread's control block above the stack), to the
/// end on the main thread's, which grows. `None` on any other stack: a neighbour may share its mapping and go away.
fn stack_of(sp: u64, thread_pointer: u64) -> Option<(u64, u64, bool)> {
    let map = mapping::holding(sp).filter(|m| m.readable && m.writable)?;
    if sp < thread_pointer && thread_pointer < map.end {
        return Some((map.start, thread_pointer, false));
    }
    stackglass_host::is_first_stack(map.start, map.end).then_some((map.start, map.end, true))
}
