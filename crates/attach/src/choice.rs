//! Chooses the driver, and says why.
//!
//! With perf events no thread is stopped, so no system call is interrupted. A user may sample own processes by them, in
//! user code, unless `kernel.perf_event_paranoid` is above 2 or a sandbox refuses the call. ptrace is used only if the
//! user asks for it.

use super::driver::{Driver, RISK};
use super::perf_events::Event;
use super::perf_refused::PerfRefused;
use super::refusal::Refusal;
use stackglass_procfs::process::living_thread;

/// A driver and the reason for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The driver.
    pub driver: Driver,
    /// The reason, in one line for the user.
    pub why: String,
}

/// Chooses the driver for a process that may be read.
///
/// # Errors
/// If perf events are refused, and no other driver is asked for.
pub fn choose(pid: u32, asked: Option<Driver>) -> Result<Choice, Refusal> {
    let choice = |driver, why: &str| Ok(Choice { driver, why: why.into() });
    match asked {
        Some(Driver::Ptrace) => choice(Driver::Ptrace, &format!("sampled by ptrace, as asked. {RISK}")),
        Some(Driver::Asleep) => choice(Driver::Asleep, "only sleeping threads have stacks"),
        Some(Driver::Perf) | None => match perf(pid) {
            Ok(()) => choice(Driver::Perf, "sampled by perf events: no thread is stopped"),
            Err(refused) => Err(Refusal::NoPerf(refused)),
        },
    }
}

/// The driver for a peek: where perf events are refused, only sleeping threads are read, unless the user has `asked`.
///
/// # Errors
/// If perf events are asked for and refused.
pub fn choose_for_peek(pid: u32, asked: Option<Driver>) -> Result<Choice, Refusal> {
    match (choose(pid, asked), asked) {
        (Err(Refusal::NoPerf(refused)), None) => Ok(Choice {
            driver: Driver::Asleep,
            why: format!(
                "{refused}: threads that run have no stack, as nothing else takes it without interrupting their \
                 system calls (`stackglass doctor` says how to get it; --sampler ptrace takes the risk)"
            ),
        }),
        (chosen, _) => chosen,
    }
}

/// Whether perf events can sample a process, so that nothing needs to stop it.
///
/// # Errors
/// Why not.
pub fn perf(pid: u32) -> Result<(), PerfRefused> {
    Event::open(living_thread(pid).unwrap_or(pid), 1_000_000, false).map(drop).map_err(PerfRefused::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptrace_is_used_only_if_asked_for_and_its_risk_is_named() {
        let choice = choose(std::process::id(), Some(Driver::Ptrace)).unwrap();
        assert!(choice.driver == Driver::Ptrace && choice.why.contains("may come back short"), "{choice:?}");
        // A process that does not exist: perf events fail whatever this process may do.
        let nobody = u32::MAX >> 2;
        for asked in [None, Some(Driver::Perf)] {
            assert!(matches!(choose(nobody, asked), Err(Refusal::NoPerf(_))));
        }
        assert_eq!(choose_for_peek(nobody, None).unwrap().driver, Driver::Asleep);
        assert!(choose_for_peek(nobody, Some(Driver::Perf)).is_err());
    }
}
