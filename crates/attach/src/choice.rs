//! Chooses the driver: which one is allowed, which one is better, and why.
//!
//! With perf events no thread is stopped, signals are not delayed, and a process under a debugger can be sampled. But
//! few users are allowed to use them. ptrace needs no more rights than reading the stacks of sleeping threads. Both
//! give equally correct stacks of known call chains, 20 to 2 000 frames deep; their cost is in the bench row
//! `attach`.

use super::access::check;
use super::driver::Driver;
use super::perf_events::Event;
use stackglass_procfs::Status;
use stackglass_procfs::process::living_thread;

/// CAP_PERFMON and CAP_SYS_ADMIN as bits.
const MAY_SAMPLE: u64 = 1 << 38 | 1 << 21;

/// A driver and the reason for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The driver.
    pub driver: Driver,
    /// The reason, in one line for the user.
    pub why: String,
}

/// Chooses the driver for a process; `asked` takes precedence if it is possible.
pub fn choose(pid: u32, asked: Option<Driver>) -> Choice {
    let perf = || Event::open(living_thread(pid).unwrap_or(pid), 1_000_000).map(drop);
    let capable = Status::own().capabilities & MAY_SAMPLE != 0;
    match asked {
        Some(Driver::Ptrace) => Choice { driver: Driver::Ptrace, why: "driver ptrace, as asked".into() },
        Some(Driver::Perf) => match perf() {
            Ok(()) => Choice { driver: Driver::Perf, why: "driver perf, as asked".into() },
            Err(error) => Choice {
                driver: Driver::Ptrace,
                why: format!(
                    "driver ptrace: perf events are refused here ({error}); sudo, CAP_PERFMON or \
                     sysctl kernel.perf_event_paranoid=1 allow them"
                ),
            },
        },
        None if (capable || paranoid() <= 1) && perf().is_ok() => {
            let why = match check(pid, Driver::Ptrace) {
                Ok(()) => {
                    "driver perf: no thread stands still (--driver ptrace makes each stand for microseconds)"
                }
                Err(_) => "driver perf: the process cannot be traced",
            };
            Choice { driver: Driver::Perf, why: why.into() }
        }
        None => Choice {
            driver: Driver::Ptrace,
            why: "driver ptrace: perf events need CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1".into(),
        },
    }
}

fn paranoid() -> i32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_done_and_said() {
        let choice = choose(std::process::id(), Some(Driver::Ptrace));
        assert_eq!((choice.driver, choice.why.as_str()), (Driver::Ptrace, "driver ptrace, as asked"));
        let choice = choose(std::process::id(), None);
        let name = if choice.driver == Driver::Perf { "driver perf: " } else { "driver ptrace: " };
        assert!(choice.why.starts_with(name), "{choice:?}");
        // A process that does not exist: perf events fail whatever this process may do.
        assert_eq!(choose(u32::MAX >> 2, Some(Driver::Perf)).driver, Driver::Ptrace);
    }
}
