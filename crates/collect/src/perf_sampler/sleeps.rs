//! Where a thread sleeps, and for how long on which stack.
//!
//! The kernel reports each sleep, with its exact length, but not its stack. A sleeping thread is read at a drain, so long sleeps
//! are seen and most brief ones are not. The chance that a sleep is seen grows with its length: a function that sleeps for
//! 10 ms is seen five times as often as one that sleeps for 2 ms. So time that was not seen belongs to the stacks of seen sleeps
//! *of the same length*, and a seen sleep counts for the others by its chance.

use super::interval::Interval;
use super::stack::Stack;

/// Sleeps shorter than this, ns, may fall between two drains.
const BRIEF: u64 = 50_000_000;
/// Drains that find none of a length, before sleeps of the next length stand for it.
const PATIENCE: u64 = 5;
/// Sleeps that are as long as this, ns, are given one by one: people look for when they were.
const ALONE: u64 = 2_000_000;
/// The class of what has not ended.
const GOES_ON: u8 = u8::MAX;

/// Seen sleeps of one class of length, on one stack.
#[derive(Clone, Copy, Debug)]
struct Seen {
    class: u8,
    stack: Stack,
    /// Their time that was not given to the stack yet, ns.
    time: u64,
    /// How many have ended, and their whole lengths.
    ended: u64,
    lengths: u64,
}

impl Seen {
    /// Splits the time among the sleeps, in proportion to their lengths.
    fn split(&self, sleeps: &[SeenOnce], mut give: impl FnMut(u64, Interval)) {
        let own = || sleeps.iter().filter(|one| (one.class, one.stack) == (self.class, self.stack));
        let length = |one: &SeenOnce| u128::from(one.interval.length());
        let all: u128 = own().map(length).sum();
        let (mut sum, mut given) = (0, 0);
        for one in own() {
            sum += length(one);
            let until = (u128::from(self.time) * sum).checked_div(all).unwrap_or(0) as u64;
            give(until - given, one.interval);
            given = until;
        }
    }

    /// What was not seen of such sleeps, ns, if each is seen by chance: drains are so far apart, give or take a half.
    fn stands_for(&self, between: u64) -> f64 {
        if self.ended == 0 {
            return 0.0;
        }
        let length = self.lengths as f64 / self.ended as f64;
        // In units of the mean distance, which is spread evenly from a half to one and a half.
        let part = (length / between.max(1) as f64).max(1e-6);
        let chance = match part {
            ..=0.5 => part,
            ..1.5 => 1.0 - (1.5 - part).powi(2) / 2.0,
            _ => 1.0,
        };
        // Longer ones are missed as well now and then.
        (self.lengths as f64 * (1.0 - chance) / chance).max(1.0)
    }
}

/// Time of sleeps of one class that were not seen, ns.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    class: u8,
    time: u64,
    interval: Interval,
    /// How many have ended since they were last shortened.
    ended: u64,
}

/// A sleep that was seen.
#[derive(Clone, Copy, Debug)]
struct SeenOnce {
    class: u8,
    stack: Stack,
    interval: Interval,
}

/// Sleep on one stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slept {
    pub stack: Stack,
    /// ns.
    pub time: u64,
    pub interval: Interval,
}

/// The sleeps of one thread.
#[derive(Default, Debug)]
pub(super) struct Sleeps {
    /// When the current sleep began.
    began: u64,
    /// Up to when it is counted.
    since: u64,
    /// The last stack that was read, and when. The records may not have reached that moment.
    read: Option<(Stack, u64)>,
    seen: Vec<Seen>,
    /// The same, one by one.
    seen_once: Vec<SeenOnce>,
    unseen: Vec<Unseen>,
    /// What was last seen of each class before.
    before: Vec<Seen>,
    last: Option<Stack>,
}

/// Lengths that differ by a factor of less than 1.41 are of one class.
fn class_of(length: u64) -> u8 {
    let micros = (length / 1000).clamp(1, u32::MAX.into());
    let octave = micros.ilog2();
    (2 * octave) as u8 + u8::from(micros * micros >= 2 << (2 * octave))
}

impl Sleeps {
    /// Those of a thread that begins at `at`, or of a recording that begins anew.
    pub(super) fn of_thread(at: u64) -> Sleeps {
        Sleeps { began: at, since: at, ..Sleeps::default() }
    }

    /// The thread does something else from now on, perhaps sleep.
    pub(super) fn begin(&mut self, at: u64) {
        (self.began, self.since) = (at, at);
    }

    /// The thread was found to sleep on this stack.
    pub(super) fn read(&mut self, stack: Stack, at: u64) {
        self.read = Some((stack, at));
    }

    /// The current sleep ends.
    pub(super) fn end(&mut self, at: u64) {
        let length = at.saturating_sub(self.began);
        let class = class_of(length);
        if let Some(stack) = self.stack_until(at) {
            self.add(class, stack, at, Some(length));
            self.read = None;
            return;
        }
        let (time, interval) = (at.saturating_sub(self.since), self.interval_until(at));
        match self.unseen.iter_mut().find(|unseen| unseen.class == class) {
            Some(unseen) => {
                unseen.time += time;
                unseen.interval = unseen.interval.hull(interval);
                unseen.ended += 1;
            }
            None => self.unseen.push(Unseen { class, time, interval, ended: 1 }),
        }
        self.since = self.since.max(at);
    }

    /// The stack of the current sleep, if it was read before this moment. One that was read later may be of the next sleep.
    fn stack_until(&self, at: u64) -> Option<Stack> {
        self.read.filter(|(_, read)| (self.began..=at).contains(read)).map(|(stack, _)| stack)
    }

    /// From where the current sleep is counted.
    fn interval_until(&self, at: u64) -> Interval {
        Interval { from: self.since.min(at), to: at }
    }

    fn add(&mut self, class: u8, stack: Stack, at: u64, length: Option<u64>) {
        let time = at.saturating_sub(self.since);
        self.seen_once.push(SeenOnce { class, stack, interval: self.interval_until(at) });
        self.since = self.since.max(at);
        let (ended, lengths) = length.map_or((0, 0), |length| (1, length));
        match self.seen.iter_mut().find(|seen| (seen.class, seen.stack) == (class, stack)) {
            Some(seen) => {
                seen.time += time;
                seen.ended += ended;
                seen.lengths += lengths;
            }
            None => self.seen.push(Seen { class, stack, time, ended, lengths }),
        }
    }

    /// At the end of the sleeps that have ended since the last settling, the thread did not sleep any more: for `awake` ns together.
    /// Takes the same time off each of them, as far as it is that long, and returns how much that is in all.
    pub(super) fn shorten(&mut self, awake: u64) -> u64 {
        if awake == 0 {
            return 0;
        }
        let mut left = awake;
        // A class that has nothing left leaves more to the others.
        for _ in 0..=self.seen.len() + self.unseen.len() {
            let seen = self.seen.iter().map(|seen| (seen.time, seen.ended));
            let unseen = self.unseen.iter().map(|unseen| (unseen.time, unseen.ended));
            let ended: u64 = seen.chain(unseen).filter(|(time, _)| *time > 0).map(|(_, ended)| ended).sum();
            let each = left.checked_div(ended).unwrap_or(0);
            if each == 0 {
                break;
            }
            for seen in &mut self.seen {
                let part = (each * seen.ended).min(seen.time);
                (seen.time, seen.lengths) = (seen.time - part, seen.lengths.saturating_sub(part));
                left -= part;
            }
            for unseen in &mut self.unseen {
                let part = (each * unseen.ended).min(unseen.time);
                unseen.time -= part;
                left -= part;
            }
        }
        self.unseen.iter_mut().for_each(|unseen| unseen.ended = 0);
        self.unseen.retain(|unseen| unseen.time > 0);
        awake - left
    }

    /// What the thread did since is not known.
    pub(super) fn doubt(&mut self, at: u64) {
        self.read = None;
        self.begin(at);
    }

    /// The stack that was last seen.
    pub(super) fn last(&self) -> Option<Stack> {
        self.last
    }

    /// Gives `slept` ns of sleep up to `at` to stacks. `asleep`: it still sleeps. `between`: the mean time between drains. What
    /// cannot be given yet is kept, unless this is the `last` settling.
    pub(super) fn settle(
        &mut self,
        (slept, at): (u64, u64),
        asleep: bool,
        last: bool,
        between: u64,
    ) -> Vec<Slept> {
        let mut goes_on = 0;
        if asleep {
            let read_late = self.read.filter(|(_, read)| last && *read >= self.began).map(|(stack, _)| stack);
            if let Some(stack) = self.stack_until(at).or(read_late) {
                self.add(GOES_ON, stack, at, None);
            }
            // A stack that was not read yet will be read.
            goes_on = if last { 0 } else { at.saturating_sub(self.since) };
        }
        let seen: u64 = self.seen.iter().map(|seen| seen.time).sum();
        let mut given: Vec<Slept> = Vec::new();
        let mut give = |stack: Stack, time: u64, interval: Interval| {
            if time == 0 {
                return;
            }
            // Brief ones of one stack are taken together.
            let is_brief = |interval: Interval| interval.length() < ALONE;
            match given.iter_mut().find(|other| other.stack == stack && is_brief(other.interval)) {
                Some(slept) if is_brief(interval) => {
                    slept.time += time;
                    slept.interval = slept.interval.hull(interval);
                }
                _ => given.push(Slept { stack, time, interval }),
            }
        };
        for seen in &self.seen {
            seen.split(&self.seen_once, |time, interval| give(seen.stack, time, interval));
        }
        self.seen_once.clear();
        self.last = self.seen.last().map(|seen| seen.stack).or(self.last);

        // The thread's own sum is exact; the parts are those of its records.
        let total = slept.saturating_sub(seen + goes_on);
        let counted = self.unseen.iter().map(|unseen| unseen.time).sum::<u64>().max(1);
        let mut left = total;
        // What is not of a class of its own is as old as the oldest that is.
        let oldest = self.unseen.iter().map(|unseen| unseen.interval).reduce(Interval::hull);
        for unseen in std::mem::take(&mut self.unseen) {
            let is_late = last || unseen.time > PATIENCE * between;
            let like = self.like(unseen.class, is_late);
            let sum: f64 = like.iter().map(|seen| seen.stands_for(between)).sum();
            if like.is_empty() || sum <= 0.0 {
                self.unseen.push(unseen);
                continue;
            }
            let time = (u128::from(total) * u128::from(unseen.time) / u128::from(counted)) as u64;
            for seen in &like {
                let part = (time as f64 * seen.stands_for(between) / sum) as u64;
                give(seen.stack, part.min(left), unseen.interval);
                left -= part.min(left);
            }
        }
        let waits: u64 = self.unseen.iter().map(|unseen| unseen.time).sum();
        let rest =
            if last || waits > BRIEF.max(PATIENCE * between) { left } else { left.saturating_sub(waits) };
        // Nothing of such a length was ever seen, or it is too little to matter.
        if let Some(stack) = self.last.filter(|_| rest > 0) {
            give(stack, rest, oldest.unwrap_or_else(|| self.interval_until(at)));
            if rest == left {
                self.unseen.clear();
            }
        }
        self.keep();
        given
    }

    /// Seen sleeps of this class, now or before; if there are none, and it is late, those of the nearest class.
    fn like(&self, class: u8, is_late: bool) -> Vec<Seen> {
        let ended = |seen: &&Seen| seen.class != GOES_ON && seen.ended > 0;
        let all = |class: u8| -> Vec<Seen> {
            let of = |seen: &[Seen]| -> Vec<Seen> {
                seen.iter().filter(ended).filter(|seen| seen.class == class).copied().collect()
            };
            let now = of(&self.seen);
            if now.is_empty() { of(&self.before) } else { now }
        };
        let own = all(class);
        if !own.is_empty() || !is_late {
            return own;
        }
        let nearest = self.seen.iter().chain(&self.before).filter(ended);
        nearest.map(|seen| seen.class).min_by_key(|other| other.abs_diff(class)).map_or_else(Vec::new, all)
    }

    /// Keeps what was seen for classes that are not seen next time.
    fn keep(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        let ended = || seen.iter().filter(|seen| seen.class != GOES_ON && seen.ended > 0);
        self.before.retain(|old| !ended().any(|new| new.class == old.class));
        self.before.extend(ended().map(|seen| Seen { time: 0, ..*seen }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::StackId;

    const MS: u64 = 1_000_000;

    fn stack(number: u32) -> Stack {
        Stack { id: StackId(number), cut: 0 }
    }

    /// What each stack gets.
    fn times(given: &[Slept]) -> Vec<(Stack, u64)> {
        let mut times: Vec<(Stack, u64)> = Vec::new();
        for Slept { stack, time, .. } in given {
            match times.iter_mut().find(|(other, _)| other == stack) {
                Some((_, sum)) => *sum += time,
                None => times.push((*stack, *time)),
            }
        }
        times
    }

    /// Sleeps of these lengths, one after the other, each on a stack of its own, and drains now and then. What each stack got.
    fn alternating(lengths: &[u64], seconds: u64) -> Vec<f64> {
        let mut sleeps = Sleeps::default();
        let mut random = stackglass_sampling::Random::new(7);
        let (mut at, mut slept, mut given) = (0, 0, vec![0; lengths.len()]);
        let mut drain = 15 * MS;
        let mut settled = 0;
        'all: loop {
            for (index, length) in lengths.iter().enumerate() {
                sleeps.begin(at);
                while drain < at + length {
                    sleeps.read(stack(index as u32), drain);
                    drain += (20.0 * MS as f64 * random.between((0.5, 1.5))) as u64;
                }
                (at, slept) = (at + length, slept + length);
                sleeps.end(at);
                let last = at > seconds * 1000 * MS;
                if last || at - settled > 100 * MS {
                    settled = at;
                    for Slept { stack, time, .. } in sleeps.settle((slept, at), false, last, 20 * MS) {
                        given[stack.id.0 as usize] += time;
                        slept -= time;
                    }
                }
                if last {
                    break 'all;
                }
            }
        }
        let all: u64 = given.iter().sum();
        assert!(at.abs_diff(all) < 1000, "{all} of {at}");
        given.iter().map(|time| *time as f64 / at as f64).collect()
    }

    #[test]
    fn lengths_that_differ_have_their_parts() {
        for lengths in [[10 * MS, 2 * MS], [2 * MS, 10 * MS], [30 * MS, MS], [80 * MS, 3 * MS], [MS, 5 * MS]]
        {
            let parts = alternating(&lengths, 10);
            let truth = lengths[0] as f64 / (lengths[0] + lengths[1]) as f64;
            assert!((parts[0] - truth).abs() < 0.02, "{lengths:?}: {parts:?}, not {truth}");
        }
    }

    #[test]
    fn lengths_of_one_class_count_by_their_chance() {
        let lengths = [8 * MS + 200_000, 11 * MS];
        assert_eq!(class_of(lengths[0]), class_of(lengths[1]));
        let parts = alternating(&lengths, 60);
        let truth = lengths[0] as f64 / (lengths[0] + lengths[1]) as f64;
        assert!((parts[0] - truth).abs() < 0.03, "{parts:?}, not {truth}");
    }

    #[test]
    fn waits_for_a_cpu_are_taken_off_each_sleep_alike() {
        let mut sleeps = Sleeps::of_thread(0);
        sleeps.read(stack(1), MS);
        sleeps.end(10 * MS);
        sleeps.begin(10 * MS);
        sleeps.end(12 * MS);
        sleeps.begin(12 * MS);
        sleeps.read(stack(1), 13 * MS);
        sleeps.end(22 * MS);
        assert_eq!(sleeps.shorten(6 * MS), 6 * MS);
        assert_eq!(times(&sleeps.settle((16 * MS, 22 * MS), false, true, 20 * MS)), [(stack(1), 16 * MS)]);
        assert_eq!(sleeps.shorten(6 * MS), 0, "no sleep has ended since");
        sleeps.begin(30 * MS);
        sleeps.end(31 * MS);
        sleeps.begin(31 * MS);
        sleeps.end(41 * MS);
        assert_eq!(
            sleeps.shorten(6 * MS),
            6 * MS,
            "the brief one loses all of its time, and the other one the rest"
        );
        sleeps.begin(50 * MS);
        sleeps.end(51 * MS);
        assert_eq!(sleeps.shorten(6 * MS), MS, "none is longer");
        assert_eq!(sleeps.shorten(6 * MS), 0);
    }

    #[test]
    fn a_stack_that_was_read_later_is_of_the_next_sleep() {
        let mut sleeps = Sleeps::default();
        sleeps.begin(0);
        // Known up to 5 ms, when the thread already sleeps elsewhere.
        sleeps.read(stack(2), 7 * MS);
        assert_eq!(times(&sleeps.settle((5 * MS, 5 * MS), true, false, 20 * MS)), []);
        sleeps.end(6 * MS);
        sleeps.begin(6 * MS);
        sleeps.end(9 * MS);
        assert_eq!(times(&sleeps.settle((9 * MS, 9 * MS), false, false, 20 * MS)), [(stack(2), 3 * MS)]);
        // Nothing else was seen at the end.
        assert_eq!(times(&sleeps.settle((6 * MS, 9 * MS), false, true, 20 * MS)), [(stack(2), 6 * MS)]);
    }

    #[test]
    fn each_sleep_is_given_when_it_was() {
        let mut sleeps = Sleeps::of_thread(0);
        sleeps.read(stack(1), 100 * MS);
        sleeps.end(150 * MS);
        sleeps.begin(160 * MS);
        sleeps.read(stack(2), 170 * MS);
        let given = sleeps.settle((160 * MS, 170 * MS), true, false, 20 * MS);
        let interval = |from, to| Interval { from: from * MS, to: to * MS };
        assert_eq!(
            given,
            [
                Slept { stack: stack(1), time: 150 * MS, interval: interval(0, 150) },
                Slept { stack: stack(2), time: 10 * MS, interval: interval(160, 170) }
            ]
        );
        // Brief ones of a class that was seen are spread over the time in which they were.
        sleeps.end(180 * MS);
        for begin in [200, 210, 220] {
            sleeps.begin(begin * MS);
            sleeps.end((begin + 2) * MS);
        }
        sleeps.begin(230 * MS);
        sleeps.read(stack(3), 231 * MS);
        sleeps.end(232 * MS);
        let given = sleeps.settle((18 * MS, 240 * MS), false, true, 20 * MS);
        assert_eq!(given[0], Slept { stack: stack(2), time: 10 * MS, interval: interval(170, 180) });
        assert_eq!(given[1], Slept { stack: stack(3), time: 2 * MS, interval: interval(230, 232) });
        assert_eq!(given[2], Slept { stack: stack(3), time: 6 * MS, interval: interval(200, 222) });
    }

    #[test]
    fn classes_grow_by_half_an_octave() {
        assert_eq!((class_of(0), class_of(999), class_of(1000), class_of(2000)), (0, 0, 0, 2));
        assert_eq!(class_of(2_100_000), class_of(2_890_000));
        assert!(class_of(2_890_000) < class_of(2_900_000));
        assert!(class_of(u64::MAX) < GOES_ON);
    }
}
