//! Stacks that were taken at the end of a system call, and how many of them to believe.
//!
//! A signal for a thread on another processor needs an interrupt between processors. It arrives some
//! microseconds later, in virtual machines tens of them; a thread that makes a system call meanwhile finds the
//! signal at the end of that call, wherever it was when the signal was sent. A program with a system call of
//! 0.1 us in each 35 us showed up to 30 % of its time there (a bare `tgkill` sampler on the same machine did,
//! too). The kernel's own account of time in user and system mode is made by the timer's interrupt on the
//! processor itself and has no such error: stacks at the ends of calls are believed as long as their share is
//! no more than that of the thread's system time. The time of those that are not waits for the next stack. In a
//! thread that makes one call after the other there is hardly any other stack to wait for: there all are believed.

/// System time is told in these units, ns (USER_HZ is 100).
const UNIT: u64 = 10_000_000;
/// CPU time after which the account is read again, ns.
const OLD: u64 = 50_000_000;
/// Addresses whose instruction is remembered.
const REMEMBERED: usize = 64;
/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Ticks whose time may wait before a stack is believed all the same; and how many stacks at calls to one elsewhere
/// make a thread that does nothing but calls.
const PATIENCE: u64 = 8;

/// One thread's account. All zeros is a thread that has just begun.
#[derive(Clone, Copy, Default, Debug)]
pub struct Account {
    /// System time and CPU time when the thread was first looked at, ns.
    before: Option<(u64, u64)>,
    /// System time since then, as last read, ns.
    system: u64,
    /// The thread's clock at that moment.
    read_at: u64,
    /// Time given to stacks at the ends of calls, ns.
    believed: u64,
    /// Stacks at the ends of calls, believed or not.
    met: u64,
}

/// A stack at the end of a call, and its thread.
#[derive(Clone, Copy, Debug)]
pub struct Doubtful {
    /// Time the stack would get, ns.
    pub time: u64,
    /// Time given to this thread's stacks before, of whatever kind, ns.
    pub given: u64,
    /// The thread's clock, ns.
    pub cpu: u64,
    /// The thread was followed from its beginning.
    pub whole: bool,
    /// Time between two ticks, ns.
    pub delay: u64,
}

impl Account {
    /// Whether the stack may have its time. `read` asks the kernel for the thread's system time.
    pub fn believes(&mut self, stack: Doubtful, read: impl FnOnce() -> Option<u64>) -> bool {
        self.met += 1;
        let elsewhere = stack.given.saturating_sub(self.believed) / stack.delay.max(1);
        let only_calls = self.met > 2 * PATIENCE && self.met > elsewhere.saturating_mul(PATIENCE);
        let old = self.before.is_none() || stack.cpu.saturating_sub(self.read_at) >= OLD;
        if old && !only_calls && !self.covers(stack) {
            let Some(system) = read() else { return true };
            let start = if stack.whole { (0, 0) } else { (system, stack.cpu) };
            let (before, _) = *self.before.get_or_insert(start);
            self.system = system.saturating_sub(before);
            self.read_at = stack.cpu;
        }
        let believed = only_calls || self.covers(stack) || stack.time >= stack.delay * PATIENCE;
        if believed {
            self.believed += stack.time;
        }
        believed
    }

    /// With a share s of system time, s of all time may lie at calls: s / (1 - s) of what lies elsewhere.
    fn covers(&self, stack: Doubtful) -> bool {
        let elsewhere = stack.given.saturating_sub(self.believed);
        let ran = self.read_at.saturating_sub(self.before.map_or(0, |(_, cpu)| cpu));
        let user = ran.saturating_sub(self.system).max(1);
        let allowed = u128::from(elsewhere) * u128::from(self.system) / u128::from(user);
        u128::from(self.believed + stack.time) <= allowed + u128::from(UNIT)
    }
}

/// Remembers which addresses lie right behind a `syscall` instruction. All zeros is empty.
pub struct Instructions {
    /// Address << 1 | whether it lies behind one.
    known: [u64; REMEMBERED],
}

impl Instructions {
    /// Whether the address lies right behind a `syscall`.
    pub fn is_behind_call(&mut self, address: u64) -> bool {
        let place = &mut self.known[address as usize % REMEMBERED];
        if *place >> 1 != address {
            let mut bytes = [0; 2];
            let read = stackglass_unwind::memory::read_own(address.wrapping_sub(2), &mut bytes);
            *place = address << 1 | u64::from(read == 2 && bytes == SYSCALL);
        }
        *place & 1 == 1
    }
}

/// System time in ns from a thread's `stat` (proc_pid_stat(5): the fifteenth field; the second may hold anything).
pub fn system_time(stat: &[u8]) -> Option<u64> {
    let behind_name = stat.iter().rposition(|b| *b == b')')?;
    let field = stat.get(behind_name + 2..)?.split(|b| *b == b' ').nth(12)?;
    let units: u64 = core::str::from_utf8(field).ok()?.parse().ok()?;
    Some(units.saturating_mul(UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hits of 1 ms, of which `at_calls` of 1 000 lie at calls, in a thread with `system` of 1 000 in system mode:
    /// the share that calls get, and the time that is never given.
    fn share(at_calls: u64, system: u64) -> (f64, u64) {
        let mut account = Account::default();
        let (mut cpu, mut given, mut to_calls, mut time) = (0u64, 0u64, 0u64, 0u64);
        let mut random = 1u64;
        for _ in 0..20_000 {
            cpu += 1_000_000;
            time += 1_000_000;
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at_call = (random >> 33) % 1000 < at_calls;
            let stack = Doubtful { time, given, cpu, whole: true, delay: 1_000_000 };
            if !at_call || account.believes(stack, || Some(cpu / 1000 * system / UNIT * UNIT)) {
                given += time;
                to_calls += if at_call { time } else { 0 };
                time = 0;
            }
        }
        (to_calls as f64 / given as f64, time)
    }

    #[test]
    fn calls_get_no_more_than_the_system_time() {
        for (at_calls, system) in [(300, 3), (300, 100), (600, 300)] {
            let (share, waiting) = share(at_calls, system);
            assert!((share - system as f64 / 1000.0).abs() < 0.02, "{at_calls}, {system}: {share}");
            assert!(waiting <= 8_000_000);
        }
    }

    #[test]
    fn true_calls_are_kept() {
        for at_calls in [2, 100, 500, 990] {
            let (share, _) = share(at_calls, at_calls);
            assert!((share - at_calls as f64 / 1000.0).abs() < 0.03, "{at_calls}: {share}");
        }
    }

    #[test]
    fn a_thread_with_nothing_but_calls_has_its_time_given() {
        let (share, waiting) = share(1000, 600);
        assert!(share == 1.0 && waiting == 0);
    }

    #[test]
    fn without_an_account_everything_is_believed() {
        let mut account = Account::default();
        let stack = Doubtful { time: 1_000_000, given: 0, cpu: 0, whole: true, delay: 1_000_000 };
        assert!((0..1000).all(|_| account.believes(stack, || None)));
    }

    #[test]
    fn system_time_is_the_fifteenth_field() {
        let stat = b"77 (odd ) name) R 1 77 77 0 -1 4194304 100 0 0 0 1234 56 0 0 20 0 1 0 5 6 7";
        assert_eq!(system_time(stat), Some(560_000_000));
        assert_eq!(system_time(b"77 (short) R 1 2"), None);
        assert_eq!(system_time(b""), None);
    }

    #[test]
    fn the_instruction_before_is_looked_at() {
        let code = [0x0fu8, 0x05, 0xc3, 0x90];
        let at = code.as_ptr().addr() as u64;
        // SAFETY: all zeros is an empty memory.
        let mut instructions: Instructions = unsafe { core::mem::zeroed() };
        for _ in 0..2 {
            assert!(instructions.is_behind_call(at + 2));
            assert!(!instructions.is_behind_call(at + 3));
        }
        assert!(!instructions.is_behind_call(1));
    }
}
