//! Which stacks that were taken at the end of a system call are accepted.
//!
//! A signal for a thread on another CPU needs an interrupt between CPUs, which takes some microseconds, and
//! tens of them in virtual machines. A thread that makes a system call meanwhile receives the signal at the end of that
//! call, wherever it was when the signal was sent. A program with a system call of 0.1 µs in each 35 µs showed up to
//! 30 % of its time there; so did a bare `tgkill` sampler on the same machine.
//!
//! The kernel's account of user and system time is made by the timer interrupt on the CPU itself, and has no such
//! error. So stacks at the ends of calls are accepted while their share does not exceed the share of the thread's system
//! time. The time of the others is kept for the next stack. A thread that makes one call after another has hardly
//! any other stack, and there all are accepted.

use stackglass_host::restart;
use stackglass_unwind::call_site::SYSCALL;
use stackglass_unwind::memory::read_own;

/// Unit of the kernel's system time, ns (USER_HZ is 100).
const UNIT: u64 = 10_000_000;
/// CPU time after which the kernel's account is read again, ns.
const OLD: u64 = 50_000_000;
/// Addresses in the cache.
const REMEMBERED: usize = 64;

/// Ticks whose time may be kept before a stack is accepted in any case. Also the ratio of stacks at calls to others at which a
/// thread counts as doing nothing but calls.
const PATIENCE: u64 = 8;

/// One thread's stacks at the ends of calls.
#[derive(Clone, Copy, Default, Debug)]
pub struct CallEnds {
    /// The kernel's account when the thread was first looked at.
    before: Option<Times>,
    /// System time since then, as last read, ns.
    system: u64,
    /// The thread's clock at that moment.
    read_at: u64,
    /// Time assigned to stacks at the ends of calls, ns.
    accepted: u64,
    /// Stacks at the ends of calls, accepted or not.
    seen: u64,
}

/// What a thread has used, ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    system: u64,
    cpu: u64,
}

/// A stack at the end of a call, and its thread.
#[derive(Clone, Copy, Debug)]
pub struct Doubtful {
    /// Time the stack would get, ns.
    pub time: u64,
    /// Time assigned to this thread's stacks before, of whatever kind, ns.
    pub given: u64,
    /// The thread's clock, ns.
    pub cpu: u64,
    /// The thread is tracked from its start.
    pub from_start: bool,
    /// Time between two ticks, ns.
    pub delay: u64,
}

impl CallEnds {
    /// Whether the stack may have its time. `read` asks the kernel for the thread's system time.
    pub fn accepts(&mut self, stack: Doubtful, read: impl FnOnce() -> Option<u64>) -> bool {
        self.seen += 1;
        let elsewhere = stack.given.saturating_sub(self.accepted) / stack.delay.max(1);
        let only_calls = self.seen > 2 * PATIENCE && self.seen > elsewhere.saturating_mul(PATIENCE);
        let old = self.before.is_none() || stack.cpu.saturating_sub(self.read_at) >= OLD;
        if old && !only_calls && !self.covers(stack) {
            let Some(system) = read() else { return true };
            let start = match stack.from_start {
                true => Times { system: 0, cpu: 0 },
                false => Times { system, cpu: stack.cpu },
            };
            self.system = system.saturating_sub(self.before.get_or_insert(start).system);
            self.read_at = stack.cpu;
        }
        let accepted = only_calls || self.covers(stack) || stack.time >= stack.delay * PATIENCE;
        if accepted {
            self.accepted += stack.time;
        }
        accepted
    }

    /// With a share s of system time, s of all time may lie at calls. That is s / (1 - s) of the time elsewhere.
    fn covers(&self, stack: Doubtful) -> bool {
        let elsewhere = stack.given.saturating_sub(self.accepted);
        let ran = self.read_at.saturating_sub(self.before.map_or(0, |before| before.cpu));
        let user = ran.saturating_sub(self.system).max(1);
        let allowed = u128::from(elsewhere) * u128::from(self.system) / u128::from(user);
        u128::from(self.accepted + stack.time) <= allowed + u128::from(UNIT)
    }
}

/// A cache of which addresses follow a `syscall` instruction. All zeros is empty.
pub struct SyscallInstructions {
    /// Address << 1 | whether it follows one.
    known: [u64; REMEMBERED],
}

impl SyscallInstructions {
    /// Whether the address follows a `syscall` instruction.
    pub fn follows_syscall(&mut self, address: u64) -> bool {
        let entry = &mut self.known[address as usize % REMEMBERED];
        if *entry >> 1 != address {
            let mut bytes = [0; 2];
            let read = read_own(address.wrapping_sub(2), &mut bytes);
            *entry = address << 1 | u64::from(read == 2 && bytes == SYSCALL);
        }
        *entry & 1 == 1
    }

    /// Whether the address follows the call `io_uring_enter`, as far as the instructions before it show that.
    pub fn follows_ring_wait(&self, address: u64) -> bool {
        let mut before = [0; restart::BEFORE];
        read_own(address.wrapping_sub(before.len() as u64), &mut before) == before.len()
            && restart::number_of(&before) == u32::try_from(libc::SYS_io_uring_enter).ok()
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
    /// the share that calls get, and the time that is never assigned.
    fn share(at_calls: u64, system: u64) -> (f64, u64) {
        let mut account = CallEnds::default();
        let (mut cpu, mut given, mut to_calls, mut time) = (0u64, 0u64, 0u64, 0u64);
        let mut random = 1u64;
        for _ in 0..20_000 {
            cpu += 1_000_000;
            time += 1_000_000;
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at_call = (random >> 33) % 1000 < at_calls;
            let stack = Doubtful { time, given, cpu, from_start: true, delay: 1_000_000 };
            if !at_call || account.accepts(stack, || Some(cpu / 1000 * system / UNIT * UNIT)) {
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
    fn a_thread_with_nothing_but_calls_has_its_time_assigned() {
        let (share, waiting) = share(1000, 600);
        assert!(share == 1.0 && waiting == 0);
    }

    #[test]
    fn without_an_account_everything_is_accepted() {
        let mut account = CallEnds::default();
        let stack = Doubtful { time: 1_000_000, given: 0, cpu: 0, from_start: true, delay: 1_000_000 };
        assert!((0..1000).all(|_| account.accepts(stack, || None)));
    }

    #[test]
    fn system_time_is_the_fifteenth_field() {
        let stat = b"77 (odd ) name) R 1 77 77 0 -1 4194304 100 0 0 0 1234 56 0 0 20 0 1 0 5 6 7";
        assert_eq!(system_time(stat), Some(560_000_000));
        assert_eq!(system_time(b"77 (short) R 1 2"), None);
        assert_eq!(system_time(b""), None);
    }

    #[test]
    fn the_instruction_before_an_address_is_read() {
        let code = [0x0fu8, 0x05, 0xc3, 0x90];
        let at = code.as_ptr().addr() as u64;
        // SAFETY: all zeros is an empty memory.
        let mut instructions: SyscallInstructions = unsafe { core::mem::zeroed() };
        for _ in 0..2 {
            assert!(instructions.follows_syscall(at + 2));
            assert!(!instructions.follows_syscall(at + 3));
        }
        assert!(!instructions.follows_syscall(1));
    }
}
