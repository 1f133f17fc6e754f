//! The wall-time profile: each tick looks at one live task, chosen at random, running or waiting.
//!
//! So every task gets the same share of looks, whatever it does, and a look stands for the time since the one before. The
//! stack of a task that is polled is that of its thread, by the two ways of [`look`](crate::look). One that waits has no
//! stack: it is told by name, with how long it has waited. Where no task lives, threads are chosen instead.

use crate::outlet::{Outlet, Stack};
use crate::roster::Record;
use crate::sampler::Sampler;
use stackglass_host::task::{self, Polled, TaskEntry, TaskPool};
use stackglass_host::{SlotIndex, system};
use stackglass_sampling::{Random, ThreadState};
use stackglass_wire::cut;

/// Places of the table that are tried at random before all are gone through.
const TRIES: u32 = 64;

/// What is remembered between ticks.
#[derive(Default)]
pub(crate) struct Wall {
    /// This is a wall-time profile.
    pub(crate) on: bool,
    /// When the last look was.
    last: u64,
    /// Time of looks that found nothing, for the next one.
    left: u64,
    /// When sampling began: nothing is known of waits before.
    began: u64,
    random: Random,
    /// Who was chosen at this tick, until somebody tells of it.
    chosen: Option<Chosen>,
}

/// A task that is looked at. Without a task it is the thread that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    polled: Polled,
    /// What the looks stand for, ns.
    time: u64,
    /// How many there were before the stack came.
    looks: u32,
}

impl Wall {
    /// Nothing chosen yet.
    pub(crate) fn new(on: bool) -> Wall {
        Wall { on, ..Wall::default() }
    }

    /// Tells a look.
    pub(crate) fn tell(
        &mut self,
        outlet: &mut Outlet,
        thread: &mut Record,
        now: u64,
        chosen: Chosen,
        stack: Stack<'_>,
    ) {
        if !outlet.of_task(thread, now, chosen.time, stack, chosen.looks) {
            self.left += chosen.time;
        }
    }

    /// Any live task, each as likely as the others: its entry's number.
    fn choose(&mut self, pool: &'static TaskPool) -> Option<(&'static TaskEntry, Polled)> {
        let used = pool.entries_used();
        let live = |number: u32| {
            let entry = pool.entry(number)?;
            let task = entry.id();
            (task != 0).then_some((entry, Polled { task, entry: number }))
        };
        if used == 0 {
            return None;
        }
        for _ in 0..TRIES {
            let number = self.random.below(used.into()) as u32 + 1;
            if let Some(found) = live(number) {
                return Some(found);
            }
        }
        // Few live where many have: one pass, in which the nth that is met replaces the one kept with chance 1 / n.
        let (mut kept, mut met) = (None, 0);
        for found in (1..=used).filter_map(live) {
            met += 1;
            if self.random.below(met) == 0 {
                kept = Some(found);
            }
        }
        kept
    }
}

impl Sampler {
    /// Sampling begins.
    pub(crate) fn begin_wall(&mut self, now: u64) {
        (self.wall.last, self.wall.left) = (now, 0);
        // Not the numbers that say when the ticks come: who is chosen must not depend on that.
        (self.wall.began, self.wall.random) =
            (now, Random::new((now ^ now >> 30).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        if !self.wall.on {
            return;
        }
        if let Some(pool) = task::pool_or_new() {
            pool.set_timed(true);
            // What an earlier profile left there is too early.
            (1..=pool.entries_used())
                .filter_map(|number| pool.entry(number))
                .for_each(|entry| entry.set_since(0));
        }
    }

    /// Sampling ends.
    pub(crate) fn finish_wall(&mut self) {
        if let Some(pool) = task::pool().filter(|_| self.wall.on) {
            pool.set_timed(false);
        }
    }

    /// One tick: a look at one task.
    pub(crate) fn take_one(&mut self, now: u64) {
        for mailbox in 0..self.memory.holders.len() {
            if let Some(index) = self.memory.holder(mailbox) {
                self.ask_after(index, now);
            }
        }
        let time = self.wall.left + now.saturating_sub(self.wall.last);
        (self.wall.last, self.wall.left) = (now, 0);
        match task::pool().and_then(|pool| Some((pool, self.wall.choose(pool)?))) {
            Some((pool, (entry, polled))) => {
                let chosen = Chosen { polled, time, looks: 1 };
                match pool.owner_of(entry).and_then(|tid| self.memory.roster.find(tid)) {
                    Some(index) => self.look_for(index, now, chosen),
                    None => self.tell_of_waiting(now, chosen),
                }
            }
            None if self.memory.roster.len() > 0 => {
                let n = self.memory.roster.len() as u32;
                let index = self.memory.roster.nth(self.wall.random.below(n.into()) as usize);
                self.look_for(index, now, Chosen { polled: Polled::default(), time, looks: 1 });
            }
            None => self.wall.left = time,
        }
        if let Some(chosen) = self.wall.chosen.take() {
            // It woke up, or is gone.
            self.wall.left = chosen.time;
        }
    }

    /// Gets the stack of the thread, for whoever was chosen. Where that fails the time is left to the next look.
    fn look_for(&mut self, index: SlotIndex, now: u64, chosen: Chosen) {
        let thread = self.memory.roster.get(index);
        let (tid, blocked) = (thread.tid, now < thread.blocked_until);
        if let Some(errand) = &mut thread.errand {
            // Its stack is on its way: a thread that waits for a processor answers late.
            match &mut errand.chosen {
                Some(before) if before.polled == chosen.polled => {
                    before.time += chosen.time;
                    before.looks += 1;
                }
                _ => self.wall.left = chosen.time,
            }
            return;
        }
        let Some(cpu) = system::thread_cpu(tid) else {
            (self.scan_soon, self.wall.left) = (true, chosen.time);
            return;
        };
        self.wall.chosen = Some(chosen);
        match self.look(index) {
            ThreadState::Blocked { pc, sp, call } => self.take_asleep(index, now, cpu, (pc, sp), call),
            _ if blocked => {
                let stack = Stack { frames: &[], cut: cut::BLOCKED, task: chosen.polled.task };
                let thread = self.memory.roster.get(index);
                self.wall.tell(&mut self.outlet, thread, now, Chosen { looks: 0, ..chosen }, stack);
            }
            _ => self.send(index, now, None),
        }
    }

    /// Who was chosen at this tick, if nobody has told of it yet.
    pub(crate) fn take_chosen(&mut self) -> Option<Chosen> {
        self.wall.chosen.take()
    }

    /// The stack of a signalled thread has come.
    pub(crate) fn tell_chosen(&mut self, index: SlotIndex, now: u64, chosen: Chosen, stack: Stack<'_>) {
        if self.is_of(index, chosen, stack.task) {
            let thread = self.memory.roster.get(index);
            self.wall.tell(&mut self.outlet, thread, now, chosen, stack);
        } else {
            self.tell_of_waiting(now, chosen);
        }
    }

    /// Whether a stack of the thread that was polling `task` is one of whom we have chosen: of the task itself, or of one
    /// that it polls. Else its poll has ended meanwhile.
    pub(crate) fn is_of(&mut self, index: SlotIndex, chosen: Chosen, task: u64) -> bool {
        let asked = chosen.polled;
        if asked.task == 0 || asked.task == task {
            return true;
        }
        let tid = self.memory.roster.get(index).tid;
        let still = |pool: &TaskPool| {
            let entry = pool.entry(asked.entry)?;
            Some(entry.id() == asked.task && pool.owner_of(entry)? == tid)
        };
        task != 0 && task::pool().and_then(still).unwrap_or(false)
    }

    /// A task that is not polled now.
    pub(crate) fn tell_of_waiting(&mut self, now: u64, chosen: Chosen) {
        // Some thread must stand for it: the first there is.
        let Some(entry) = task::pool().and_then(|pool| pool.entry(chosen.polled.entry)) else { return };
        if self.memory.roster.len() == 0 {
            return;
        }
        let index = self.memory.roster.nth(0);
        let since = entry.since().max(self.wall.began);
        let text = task::untold(chosen.polled);
        if entry.id() != chosen.polled.task {
            // It has ended.
            self.wall.left += chosen.time;
            return;
        }
        self.tell_task(index, chosen.polled, text);
        let waits = [now.saturating_sub(since)];
        let stack = Stack { frames: &waits, cut: cut::WAITS, task: chosen.polled.task };
        let thread = self.memory.roster.get(index);
        self.wall.tell(&mut self.outlet, thread, now, chosen, stack);
    }
}
