//! Short lives of one program, taken together.
//!
//! Where each moment of CPU time has the same chance of a stack, a life of a fifth of a period has a stack in one of five cases. That
//! stack stands for a whole period, of which its own thread has run a fifth. The rest is time of the other lives, which have no
//! stack. So the time that is left over is split among the stacks that are left over, in proportion to what these stand for.
//! Each thread gets exactly the time that it ran.

use super::interval::Interval;
use super::stack::Stack;
use foldhash::HashMap;
use stackglass_profile::{Cut, Nanos, Recorder, Sample, StackId, State, ThreadNumber};
use stackglass_wire::cut;

/// Most lives and stacks that wait in one group. Beyond that they are settled at once.
const MOST: usize = 1 << 16;

/// CPU time of a thread that has ended, for which no stack was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub thread: ThreadNumber,
    /// When it was spent.
    pub interval: Interval,
    /// ns.
    pub time: u64,
    /// The stack without frames.
    pub no_stack: StackId,
}

/// The short lives of one program.
#[derive(Default, Debug)]
pub(super) struct Alike {
    owed: Vec<Owed>,
    /// Stacks, and the time that they stand for beyond what their own threads ran, ns.
    offers: Vec<(Stack, u64)>,
    by_stack: HashMap<(StackId, u8), usize>,
}

impl Alike {
    /// A stack stands for this much more than its thread ran.
    pub(super) fn offer(&mut self, stack: Stack, time: u64) {
        if time == 0 {
            return;
        }
        let index = *self.by_stack.entry((stack.id, stack.cut)).or_insert(self.offers.len());
        match self.offers.get_mut(index) {
            Some((_, all)) => *all += time,
            None => self.offers.push((stack, time)),
        }
    }

    /// A thread has ended with time that has no stack.
    pub(super) fn owe(&mut self, owed: Owed) {
        self.owed.push(owed);
    }

    /// Whether it should be settled now.
    pub(super) fn is_large(&self) -> bool {
        self.owed.len() > MOST || self.offers.len() > MOST
    }

    /// Gives all owed time to the offered stacks. Without any, the time waits, or has no stack if this is the `last` settling.
    pub(super) fn settle(&mut self, last: bool, recorder: &mut Recorder) {
        if self.offers.is_empty() {
            if last || self.is_large() {
                for owed in std::mem::take(&mut self.owed) {
                    add(recorder, &owed, owed.time, Stack { id: owed.no_stack, cut: cut::SHORT });
                }
            }
            return;
        }
        if self.owed.is_empty() {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        self.by_stack.clear();
        split(&owed, &std::mem::take(&mut self.offers), |owed, time, stack| add(recorder, owed, time, stack));
    }
}

/// Splits the owed time in proportion to the offers. Each thread's time is given as a whole, except where an offer ends.
fn split(owed: &[Owed], offers: &[(Stack, u64)], mut give: impl FnMut(&Owed, u64, Stack)) {
    let all: u128 = owed.iter().map(|owed| u128::from(owed.time)).sum();
    let offered: u128 = offers.iter().map(|(_, time)| u128::from(*time)).sum();
    let mut owed = owed.iter();
    let (mut current, mut left) = (owed.next(), 0);
    left += current.map_or(0, |owed| owed.time);
    let (mut given, mut sum) = (0u128, 0u128);
    for (stack, time) in offers {
        sum += u128::from(*time);
        // What the offers up to this one get. The last one gets all of the rest.
        let until = all * sum / offered.max(1);
        while given < until
            && let Some(one) = current
        {
            let part = u64::try_from(until - given).unwrap_or(u64::MAX).min(left);
            give(one, part, *stack);
            given += u128::from(part);
            left -= part;
            if left == 0 {
                current = owed.next();
                left = current.map_or(0, |owed| owed.time);
            }
        }
    }
}

fn add(recorder: &mut Recorder, owed: &Owed, time: u64, stack: Stack) {
    let cut = (stack.cut != 0).then_some(Cut(stack.cut));
    let (thread, clock, spread) = (owed.thread, Nanos(owed.interval.to), Nanos(owed.interval.spread(time)));
    let (stack, state, time) = (stack.id, State::Awake, Nanos(time));
    recorder.add_sample(Sample { stack, thread, task: 0, clock, state, cut, hits: 0, time, spread });
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_sampling::Random;

    fn owed(thread: u32, time: u64) -> Owed {
        Owed {
            thread: ThreadNumber(thread),
            interval: Interval { from: 0, to: 0 },
            time,
            no_stack: StackId(0),
        }
    }

    fn stack(id: u32) -> Stack {
        Stack { id: StackId(id), cut: 0 }
    }

    #[test]
    fn owed_time_is_split_as_offered() {
        let mut given = Vec::new();
        let owed: Vec<Owed> = (1..=4).map(|thread| owed(thread, 100)).collect();
        split(&owed, &[(stack(1), 300), (stack(2), 100), (stack(3), 400)], |owed, time, stack| {
            given.push((owed.thread.0, time, stack.id.0));
        });
        assert_eq!(given, [(1, 100, 1), (2, 50, 1), (2, 50, 2), (3, 100, 3), (4, 100, 3)]);
        split(&[], &[(stack(1), 300)], |_, _, _| panic!("nothing is owed"));
        split(&owed, &[], |_, _, _| panic!("nothing is offered"));
    }

    #[test]
    fn offers_of_one_stack_are_one() {
        let mut alike = Alike::default();
        alike.offer(stack(1), 5);
        alike.offer(stack(2), 0);
        alike.offer(stack(3), 7);
        alike.offer(stack(1), 6);
        assert_eq!(alike.offers, [(stack(1), 11), (stack(3), 7)]);
    }

    /// Lives of a fifth of a period, two fifths of each in one function and three in another.
    #[test]
    fn shares_of_short_lives_are_those_of_their_moments() {
        let (mut random, mut alike) = (Random::new(3), Alike::default());
        let mut sums = [0u64; 2];
        for life in 0..20_000 {
            let hit = random.below(1000);
            match hit {
                0..80 => (sums[0] += 200, alike.offer(stack(0), 800)),
                80..200 => (sums[1] += 200, alike.offer(stack(1), 800)),
                _ => ((), alike.owe(owed(life + 1, 200))),
            };
        }
        split(&alike.owed, &alike.offers, |_, time, stack| sums[stack.id.0 as usize] += time);
        assert_eq!(sums[0] + sums[1], 20_000 * 200);
        // About 4000 stacks: 0.4 within three standard errors.
        let share = sums[0] as f64 / (sums[0] + sums[1]) as f64;
        assert!((share - 0.4).abs() < 3.0 * (0.4f64 * 0.6 / 4000.0).sqrt(), "{share}");
    }
}
