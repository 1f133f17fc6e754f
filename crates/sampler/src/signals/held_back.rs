//! Whether a thread's stacks come late because it blocks the signal.
//!
//! A timer that fires meanwhile sends a signal that stays pending until the block ends. The stack is that of the end of the block, and says
//! nothing of the time before. A long system call delays stacks, too. The kernel tells the two apart: it knows
//! whether the thread blocks a signal that is pending.

/// Periods without a stack after which one is late.
const LATE: u64 = 2;
/// A thread holds the signal back if one reading in fewer than so many says so. The mask of short blocks is rarely met with a signal.
const USUAL: u32 = 8;
/// Readings after which earlier ones count half.
const MOST: u32 = 64;

/// When a stack came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lateness {
    /// In time, or that is not known.
    None,
    /// After so much CPU time without one, ns.
    Late(u64),
    /// With a late one: the other timer's signal waited as well.
    WithLate,
}

/// Late stacks of one thread. All zeros is none.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HeldBack {
    /// The thread's clock at its last stack.
    heard_at: u64,
    /// And at its last late one.
    late_at: u64,
    /// How often the kernel was asked, and said that a signal waits.
    readings: u32,
    waiting: u32,
    /// The tick at which it was asked last.
    read_at: u64,
}

impl HeldBack {
    /// Stacks may come from now on, when the thread's clock shows `cpu`.
    pub(crate) fn start(&mut self, cpu: u64) {
        self.heard_at = self.heard_at.max(cpu);
    }

    /// A stack has come, which was taken when the thread's clock showed `cpu`. One is due in each `period`, if that is known.
    pub(crate) fn heard(&mut self, cpu: u64, period: Option<u64>) -> Lateness {
        let silent = cpu.saturating_sub(self.heard_at);
        self.heard_at = self.heard_at.max(cpu);
        let Some(period) = period else { return Lateness::None };
        if silent >= period * LATE {
            self.late_at = cpu;
            Lateness::Late(silent)
        } else if self.late_at > 0 && cpu.saturating_sub(self.late_at) < period / 4 {
            Lateness::WithLate
        } else {
            Lateness::None
        }
    }

    /// The time before a stack in which the signal was held back, if it was. `holds_back` asks the kernel, once a tick.
    pub(crate) fn time(
        &mut self,
        lateness: Lateness,
        tick: u64,
        holds_back: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let time = match lateness {
            Lateness::None => return None,
            Lateness::WithLate => 0,
            Lateness::Late(time) => {
                if self.read_at != tick {
                    self.read_at = tick;
                    self.push(holds_back());
                }
                time
            }
        };
        self.is_usual().then_some(time)
    }

    /// Whether the thread often holds the signal back, by what is known of it.
    pub(crate) fn is_usual(&self) -> bool {
        self.waiting * USUAL > self.readings
    }

    /// A stack was late, or none has come for a while, and the kernel was asked whether a signal waits.
    pub(crate) fn push(&mut self, is_waiting: bool) {
        if self.readings >= MOST {
            (self.readings, self.waiting) = (self.readings / 2, self.waiting / 2);
        }
        self.readings += 1;
        self.waiting += u32::from(is_waiting);
    }
}
