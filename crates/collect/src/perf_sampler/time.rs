//! The time of one thread: what it ran, waited for a CPU and slept, and how much of it was assigned to stacks.
//!
//! The time between two switches is known exactly. The kernel's account of a thread also contains the cost of the switches
//! themselves, and leaves out interrupts and what the host of a virtual machine takes. So the account is read now and then while the
//! thread is off its CPU. If that is not possible, because the thread has ended, the mean difference for a switch is added.
//!
//! The kernel does not report when a sleeping thread is woken, only when it gets a CPU. But its account also says how long the thread has
//! waited for CPUs: what exceeds the waits after preemptions was a wait after a sleep. Neither that nor the cost of switches is sleep.

use stackglass_proc_text::SchedStat;

/// Most that a switch may cost, ns. A larger difference has another cause.
const MOST_PER_SWITCH: u64 = 100_000;
/// How far the account of a running thread may lag behind, ns: one tick at 100 Hz.
const ACCOUNT_LAG: u64 = 10_000_000;
/// Switches after which the mean is used.
const ENOUGH: u64 = 50;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It has a CPU.
    Running,
    /// It is runnable without a CPU.
    Ready,
    /// It sleeps.
    Asleep,
    /// Records were lost: not known. Such time is not counted, but read from the kernel's account if that is possible.
    Unknown,
}

/// The mean cost of a switch on this machine, learned from threads whose account could be read. It is negative where interrupts take
/// more than switches.
#[derive(Default, Debug)]
pub(super) struct SwitchCost {
    extra: i64,
    switches: u64,
}

impl SwitchCost {
    fn learn(&mut self, extra: i64, switches: u64) {
        if extra.unsigned_abs() <= switches.saturating_mul(MOST_PER_SWITCH) {
            self.extra += extra;
            self.switches += switches;
        }
    }

    fn of(&self, switches: u64) -> i64 {
        match self.switches {
            ENOUGH.. => (i128::from(self.extra) * i128::from(switches) / i128::from(self.switches)) as i64,
            _ => 0,
        }
    }
}

/// A reading of the kernel's account.
#[derive(Clone, Copy, Debug)]
struct Reading {
    account: SchedStat,
    /// `ran` at that moment.
    ran: u64,
    /// `preempted` at that moment.
    preempted: u64,
    /// `switches` at that moment.
    switches: u64,
}

/// The time of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadTime {
    phase: Phase,
    since: u64,
    /// When the current phase began.
    entered: u64,
    /// What it ran between switches.
    ran: u64,
    /// How often it got a CPU.
    switches: u64,
    /// The last reading of the kernel's account.
    reading: Option<Reading>,
    /// A later reading and its moment, up to which not all records are known yet.
    early: Option<(SchedStat, u64)>,
    /// What the last reading says about the cost of switches: ns, and their number.
    learned: Option<(i64, u64)>,
    /// By how much the account exceeded `ran` at the last reading.
    extra: i64,
    assigned: u64,
    /// For how long it was without a CPU after preemptions, in all.
    preempted: u64,
    /// By how much the kernel's count of waits exceeds those after preemptions. This time counts as sleep so far.
    waited_after_sleep: i64,
    /// CPU time of switches that counts as sleep as well.
    switched_in_sleep: i64,
    waited: u64,
    slept: u64,
    /// Records were lost since the last reading: its difference is not the cost of switches.
    lost: bool,
    /// Time since the last reading in which it is not known what the thread did.
    unknown: u64,
    /// CPU time that counts as waiting or sleep as well: records in between were lost.
    surplus: u64,
    /// Records were lost at some time.
    doubted: bool,
    /// When counting began, and all time that was given to stacks since, ns.
    began: u64,
    given: u64,
}

impl ThreadTime {
    /// A thread that begins at `at`.
    pub(super) fn new(at: u64, phase: Phase) -> ThreadTime {
        ThreadTime {
            phase,
            since: at,
            entered: at,
            ran: 0,
            switches: 0,
            reading: None,
            early: None,
            learned: None,
            extra: 0,
            assigned: 0,
            preempted: 0,
            waited_after_sleep: 0,
            switched_in_sleep: 0,
            waited: 0,
            slept: 0,
            lost: false,
            unknown: 0,
            surplus: 0,
            doubted: false,
            began: at,
            given: 0,
        }
    }

    /// A thread that begins now: its account begins at zero.
    pub(super) fn born(at: u64) -> ThreadTime {
        let reading = Some(Reading { account: SchedStat::default(), ran: 0, preempted: 0, switches: 0 });
        ThreadTime { reading, ..ThreadTime::new(at, Phase::Ready) }
    }

    /// Its phase now.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Enters another phase. Moments that run backwards count as standing still.
    pub(super) fn enter(&mut self, phase: Phase, at: u64) {
        self.advance(at);
        if phase == Phase::Running && self.phase != Phase::Running {
            self.switches += 1;
        }
        if phase != self.phase {
            self.entered = self.since;
        }
        self.phase = phase;
    }

    /// What the thread did after the moment `certain` is not known. Whatever was counted since is taken back.
    pub(super) fn doubt(&mut self, certain: u64) {
        self.advance(certain);
        let over = self.since - certain.clamp(self.entered, self.since);
        let counted = match self.phase {
            Phase::Running => &mut self.ran,
            Phase::Ready => &mut self.waited,
            Phase::Asleep => &mut self.slept,
            Phase::Unknown => return,
        };
        (self.lost, self.doubted) = (true, true);
        self.unknown += over;
        // What was given to stacks is taken back from what comes next.
        if self.phase != Phase::Running {
            self.surplus += over.saturating_sub(*counted);
        }
        *counted = counted.saturating_sub(over);
        (self.phase, self.entered) = (Phase::Unknown, self.since - over);
    }

    /// Records of some CPU were lost. The thread may have run there, whatever its own records say.
    pub(super) fn note_loss(&mut self) {
        (self.lost, self.doubted) = (true, true);
        self.learned = None;
    }

    /// Counts the current phase up to `at`.
    pub(super) fn advance(&mut self, at: u64) {
        self.apply_reading(at);
        let passed = at.saturating_sub(self.since);
        self.since = self.since.max(at);
        match self.phase {
            Phase::Running => self.ran += passed,
            Phase::Ready => {
                self.waited += passed;
                self.preempted += passed;
            }
            Phase::Asleep => self.slept += passed,
            Phase::Unknown => self.unknown += passed,
        }
    }

    /// Adds a reading of the kernel's account at the moment `at`, of a thread that was off its CPU then. It counts
    /// as soon as all records up to that moment are known: until then, it may contain time that is still to be counted.
    /// Later readings count from the first one.
    pub(super) fn read(&mut self, account: SchedStat, at: u64, cost: &mut SwitchCost) {
        if let Some((extra, switches)) = self.learned.take() {
            cost.learn(extra, switches);
        }
        if self.reading.is_none() && self.early.is_none() {
            self.extra = cost.of(self.switches);
        }
        self.early = Some((account, at));
    }

    /// Applies the last reading if it is from before `at`, up to which all records are known.
    fn apply_reading(&mut self, at: u64) {
        let Some((account, read_at)) = self.early.filter(|(_, read_at)| *read_at <= at) else { return };
        self.early = None;
        if self.phase == Phase::Running && self.entered <= read_at {
            return;
        }
        // The kernel adds a wait to its account when it ends.
        let goes_on = if self.phase == Phase::Ready { self.since - self.entered } else { 0 };
        let ended_waits = self.preempted.saturating_sub(goes_on);
        if let Some(Reading { account: before, ran, preempted, switches }) = self.reading {
            let extra = account.ran.saturating_sub(before.ran) as i64 - (self.ran as i64 - ran as i64);
            self.extra += extra;
            let waited = account.waited.saturating_sub(before.waited);
            if self.lost {
                self.surplus += extra.saturating_sub_unsigned(self.unknown).max(0) as u64;
                // All time that is not known as sleep may have been another wait.
                let goes_on = match self.phase {
                    Phase::Ready | Phase::Unknown => read_at.saturating_sub(self.since),
                    Phase::Running | Phase::Asleep => 0,
                };
                let others = self.preempted - preempted + self.unknown + goes_on;
                self.waited_after_sleep += waited.saturating_sub(others) as i64;
            } else {
                let switches = self.switches - switches;
                self.learned = Some((extra, switches));
                self.switched_in_sleep += extra.min(switches.saturating_mul(MOST_PER_SWITCH) as i64);
                self.waited_after_sleep += waited as i64 - (ended_waits as i64 - preempted as i64);
            }
        }
        (self.lost, self.unknown) = (false, 0);
        let (ran, preempted, switches) = (self.ran, ended_waits, self.switches);
        self.reading = Some(Reading { account, ran, preempted, switches });
    }

    /// Corrects the time of a running thread up to `at`: it cannot have run longer than its whole account says, which was read later.
    pub(super) fn bound(&mut self, account: u64, at: u64, cost: &SwitchCost) {
        self.advance(at);
        let over = self.clock(cost).saturating_sub(account);
        if over > ACCOUNT_LAG {
            self.extra -= over as i64;
        }
    }

    /// CPU time since its start, ns.
    pub(super) fn clock(&self, cost: &SwitchCost) -> u64 {
        let unread = self.switches - self.reading.map_or(0, |reading| reading.switches);
        let clock = self.ran as i64 + cost.of(unread) + self.extra;
        clock.max(0) as u64
    }

    /// How long the thread has run at a time on average, ns.
    pub(super) fn mean_run(&self, cost: &SwitchCost) -> u64 {
        self.clock(cost) / self.switches.max(1)
    }

    /// CPU time that no stack has got yet; negative if stacks have got too much.
    pub(super) fn pending(&self, cost: &SwitchCost) -> i64 {
        self.clock(cost) as i64 - self.assigned as i64
    }

    /// Gives `time` of the CPU time to stacks.
    pub(super) fn give(&mut self, time: u64) {
        self.assigned += time;
        self.given += time;
    }

    /// All CPU time assigned to stacks.
    pub(super) fn assigned(&self) -> u64 {
        self.assigned
    }

    /// How much of what counts as sleep was none, ns: waits for a CPU, and switches.
    pub(super) fn awake_in_sleep(&self) -> u64 {
        let both = self.switched_in_sleep.max(0) + self.waited_after_sleep.max(0);
        (both as u64).saturating_add(self.surplus_in_sleep()).min(self.slept)
    }

    /// What is left of the surplus when no wait is.
    fn surplus_in_sleep(&self) -> u64 {
        self.surplus.saturating_sub(self.waited)
    }

    /// `time` of what counts as sleep is taken off. Except for the surplus and the switches, it was a wait for a CPU.
    pub(super) fn shorten_sleep(&mut self, time: u64) {
        let surplus = time.min(self.surplus_in_sleep());
        self.surplus -= surplus;
        self.slept = self.slept.saturating_sub(surplus);
        let time = time - surplus;
        let switched = time.min(self.switched_in_sleep.max(0) as u64);
        let waited = time - switched;
        self.slept = self.slept.saturating_sub(time);
        self.waited += waited;
        self.switched_in_sleep -= switched as i64;
        self.waited_after_sleep -= waited as i64;
    }

    /// Removes and returns the time in which it waited for a CPU. After a loss, the next reading says first whether it did, unless this is
    /// the `last` time.
    pub(super) fn take_waited(&mut self, last: bool) -> u64 {
        if self.lost && !last {
            return 0;
        }
        let surplus = self.surplus.min(self.waited);
        self.surplus -= surplus;
        let mut waited = std::mem::take(&mut self.waited) - surplus;
        if self.doubted {
            // A thread has no more time than it has lived.
            let left = (self.since - self.began).saturating_sub(self.given + self.slept);
            waited = waited.min(left);
        }
        self.given += waited;
        waited
    }

    /// Sleep that no stack has got yet.
    pub(super) fn slept(&self) -> u64 {
        self.slept
    }

    /// Gives `time` of the sleep to stacks.
    pub(super) fn give_slept(&mut self, time: u64) {
        self.slept = self.slept.saturating_sub(time);
        self.given += time;
    }

    /// Forgets all time that was not assigned. Counting begins again at `at`.
    pub(super) fn begin_anew(&mut self, at: u64, cost: &SwitchCost) {
        self.advance(at);
        (self.waited, self.slept, self.surplus) = (0, 0, 0);
        (self.waited_after_sleep, self.switched_in_sleep) = (0, 0);
        self.assigned = self.clock(cost);
        (self.began, self.given) = (self.since, 0);
    }

    /// The moment up to which time is counted.
    pub(super) fn until(&self) -> u64 {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's account of a thread that has run for `ran` ns and never waited for a CPU.
    fn account(ran: u64) -> SchedStat {
        SchedStat { ran, ..SchedStat::default() }
    }

    #[test]
    fn phases_sum_to_wall_time() {
        let mut time = ThreadTime::new(1000, Phase::Ready);
        let cost = SwitchCost::default();
        time.enter(Phase::Running, 1100);
        time.enter(Phase::Asleep, 1400);
        time.enter(Phase::Running, 2000);
        time.enter(Phase::Ready, 2005);
        time.enter(Phase::Running, 2025);
        // A moment from before is no step back.
        time.advance(1900);
        time.advance(2030);
        assert_eq!((time.clock(&cost), time.slept(), time.waited), (310, 600, 120));
        assert_eq!(time.until() - 1000, 310 + 600 + 120);
        time.give(300);
        assert_eq!((time.pending(&cost), time.assigned()), (10, 300));
        time.give_slept(500);
        assert_eq!((time.slept(), time.take_waited(false), time.take_waited(false)), (100, 120, 0));
        time.begin_anew(3000, &cost);
        assert_eq!((time.pending(&cost), time.clock(&cost)), (0, 1280));
    }

    #[test]
    fn waits_after_sleeps_are_what_the_kernel_counts_beyond_preemptions() {
        let (mut time, mut cost) = (ThreadTime::born(0), SwitchCost::default());
        time.enter(Phase::Running, 1000);
        time.enter(Phase::Asleep, 2000);
        time.enter(Phase::Running, 9000);
        time.enter(Phase::Ready, 10_000);
        time.enter(Phase::Running, 10_500);
        time.enter(Phase::Asleep, 11_000);
        // 1000 ns at its birth, 500 after it was preempted, and 300 after its sleep.
        time.read(SchedStat { ran: 2550, waited: 1800, turns: 3 }, 12_000, &mut cost);
        assert_eq!(time.awake_in_sleep(), 0, "not all records up to then are known");
        time.advance(13_000);
        // Three switches have cost 50 ns.
        assert_eq!((time.awake_in_sleep(), time.slept(), time.clock(&cost)), (350, 9000, 2550));
        time.shorten_sleep(250);
        assert_eq!((time.awake_in_sleep(), time.slept(), time.take_waited(false)), (100, 8750, 1700));
        time.give_slept(8750);
        assert_eq!(time.awake_in_sleep(), 0, "no sleep is left to which it could belong");
        time.advance(13_500);
        assert_eq!(time.awake_in_sleep(), 100);
        // Where the kernel counts no waits, nothing changes.
        time.read(SchedStat { ran: 2550, ..SchedStat::default() }, 14_000, &mut cost);
        time.advance(15_000);
        assert_eq!(time.awake_in_sleep(), 100);
    }

    /// A thread that runs 100 times for 10 us, with an account that has 2 us more for each switch.
    fn hundred_turns(time: &mut ThreadTime, from: u64) -> u64 {
        for turn in 0..100 {
            time.enter(Phase::Running, from + turn * 100_000);
            time.enter(Phase::Asleep, from + turn * 100_000 + 10_000);
        }
        100 * 12_000
    }

    #[test]
    fn the_kernels_account_adds_what_switches_cost() {
        let mut cost = SwitchCost::default();
        let mut time = ThreadTime::new(0, Phase::Asleep);
        // CPU time before the first reading is not used.
        time.read(account(5_000_000), 0, &mut cost);
        let ran = hundred_turns(&mut time, 0);
        assert_eq!(time.clock(&cost), 1_000_000);
        time.read(account(5_000_000 + ran), 10_000_000, &mut cost);
        assert_eq!(time.clock(&cost), 1_000_000, "not all records up to then are known");
        time.advance(10_000_000);
        assert_eq!(time.clock(&cost), 1_200_000);
        time.read(account(5_000_000 + ran), 10_000_001, &mut cost);
        // Another thread, which cannot be read, is counted with what was learned.
        let mut other = ThreadTime::new(0, Phase::Asleep);
        hundred_turns(&mut other, 0);
        assert_eq!(other.clock(&cost), 1_200_000);
        // And one that is read late loses nothing.
        other.read(account(77), 10_000_000, &mut cost);
        other.advance(10_000_000);
        assert_eq!(other.clock(&cost), 1_200_000);
        let ran = hundred_turns(&mut other, 20_000_000);
        other.read(account(77 + ran), 30_000_000, &mut cost);
        other.advance(30_000_000);
        assert_eq!(other.clock(&cost), 2_400_000);
    }

    #[test]
    fn a_switch_that_was_lost_is_noticed_by_the_account() {
        let (mut time, cost) = (ThreadTime::new(0, Phase::Running), SwitchCost::default());
        time.bound(995_000_000, 1_000_000_000, &cost);
        assert_eq!(time.clock(&cost), 1_000_000_000, "it may lag behind");
        time.bound(200_000_000, 1_000_000_000, &cost);
        assert_eq!(time.clock(&cost), 200_000_000);
        time.advance(1_100_000_000);
        assert_eq!(time.clock(&cost), 300_000_000);
    }

    #[test]
    fn time_in_doubt_is_the_accounts() {
        let (mut time, mut cost) = (ThreadTime::born(1000), SwitchCost::default());
        time.enter(Phase::Running, 2000);
        time.advance(9_000_000);
        time.doubt(5_000_000);
        assert_eq!((time.phase(), time.clock(&cost)), (Phase::Unknown, 4_998_000));
        time.advance(50_000_000);
        assert_eq!(time.clock(&cost), 4_998_000);
        time.read(account(6_000_000), 50_000_000, &mut cost);
        time.advance(50_000_000);
        assert_eq!(time.clock(&cost), 6_000_000);
        time.enter(Phase::Running, 60_000_000);
        time.enter(Phase::Asleep, 61_000_000);
        assert_eq!(time.clock(&cost), 7_000_000);
        // Nothing of what was certain is taken back.
        time.doubt(0);
        assert_eq!((time.clock(&cost), time.slept()), (7_000_000, 0));
    }

    #[test]
    fn what_was_run_between_lost_records_is_no_wait() {
        let (mut time, mut cost) = (ThreadTime::born(0), SwitchCost::default());
        time.enter(Phase::Running, 1_000_000);
        time.enter(Phase::Ready, 2_000_000);
        // It has run from 3 to 6 ms, and the records of that are lost.
        time.note_loss();
        time.advance(7_000_000);
        assert_eq!(time.take_waited(false), 0, "a reading is to come");
        time.read(account(4_000_000), 7_000_000, &mut cost);
        time.advance(8_000_000);
        assert_eq!(time.clock(&cost), 4_000_000);
        time.give(4_000_000);
        assert_eq!(time.take_waited(false), 4_000_000);
        // The same of a sleep.
        time.enter(Phase::Asleep, 8_000_000);
        time.note_loss();
        time.read(account(5_000_000), 10_000_000, &mut cost);
        time.advance(11_000_000);
        assert_eq!((time.awake_in_sleep(), time.slept()), (1_000_000, 3_000_000));
        time.shorten_sleep(1_000_000);
        assert_eq!((time.slept(), time.take_waited(true), time.clock(&cost)), (2_000_000, 0, 5_000_000));
    }

    #[test]
    fn a_wait_after_a_sleep_is_no_sleep_although_records_were_lost() {
        let (mut time, mut cost) = (ThreadTime::born(0), SwitchCost::default());
        time.enter(Phase::Running, 0);
        time.enter(Phase::Asleep, 1_000_000);
        time.enter(Phase::Running, 11_000_000);
        time.enter(Phase::Ready, 12_000_000);
        // It has run from 13 to 14 ms, which no record says, and waits again.
        time.note_loss();
        time.read(SchedStat { ran: 3_000_000, waited: 9_000_000, turns: 3 }, 15_000_000, &mut cost);
        time.advance(16_000_000);
        // 8 ms after the sleep and one after the preemption. As far as is known, up to 3 ms were after that.
        assert_eq!(time.waited_after_sleep, 6_000_000);
        // Of 8 ms, up to 4 were while it was ready, and up to 3 while nothing is known of it.
        time.enter(Phase::Running, 16_000_000);
        time.enter(Phase::Asleep, 17_000_000);
        time.doubt(17_000_000);
        time.advance(20_000_000);
        time.read(SchedStat { ran: 4_000_000, waited: 17_000_000, turns: 4 }, 20_000_000, &mut cost);
        time.advance(20_000_000);
        assert_eq!(time.waited_after_sleep, 6_000_000 + 1_000_000);
    }

    #[test]
    fn a_reading_from_after_the_last_record_counts_nothing_twice() {
        let (mut time, mut cost) = (ThreadTime::born(0), SwitchCost::default());
        // When it was read, it had run for 300 µs, of which no record is known yet.
        time.read(account(300_000), 1_000_000, &mut cost);
        time.enter(Phase::Running, 500_000);
        time.enter(Phase::Asleep, 790_000);
        time.advance(800_000);
        assert_eq!(time.clock(&cost), 290_000);
        time.enter(Phase::Running, 2_000_000);
        assert_eq!(time.clock(&cost), 300_000);
        // It ran at the moment of this reading, so that the account lagged behind.
        time.read(account(300_000), 2_100_000, &mut cost);
        time.enter(Phase::Asleep, 2_500_000);
        assert_eq!(time.clock(&cost), 800_000);
    }

    #[test]
    fn a_jump_of_the_account_is_no_cost_of_switching() {
        let mut cost = SwitchCost::default();
        let mut time = ThreadTime::new(0, Phase::Asleep);
        time.read(account(0), 0, &mut cost);
        hundred_turns(&mut time, 0);
        time.read(account(60_000_000_000), 10_000_000, &mut cost);
        time.advance(10_000_000);
        time.read(account(60_000_000_000), 10_000_001, &mut cost);
        assert_eq!(cost.of(1000), 0);
    }
}
