//! Checks whether a process may be sampled, before anything is done to it.
//!
//! Whatever rule refuses access, the kernel's answer is always "no permission". The rules are: the user, a program
//! that is not dumpable, Yama, a missing capability in a container, a filter of system calls, another tracer. What
//! these rules look at is in `/proc`, so the message can name the rule and its remedy.

use super::deadlock::Seizing;
use super::driver::Driver;
use super::ptrace;
use super::refusal::Refusal;
use super::tracer_lock::AttachMode;
use stackglass_procfs::status::process_of;
use stackglass_procfs::{Status, maps, process, threads};
use stackglass_unwind::memory::read_process;
use std::fs;
use std::io;

/// CAP_SYS_PTRACE as a bit.
const CAN_TRACE: u64 = 1 << 19;

/// Checks whether a process can be sampled with a driver. The process is not affected.
///
/// # Errors
/// Which rule forbids it.
pub fn check(pid: u32, driver: Driver) -> Result<(), Refusal> {
    check_while_tracing(pid, driver, &Seizing::default())
}

/// Like [`check`], for the thread that traces the process. That thread reaps no tracee meanwhile; through `seizing`, another one does.
///
/// # Errors
/// Which rule forbids it.
pub(super) fn check_while_tracing(pid: u32, driver: Driver, seizing: &Seizing) -> Result<(), Refusal> {
    let mut refusal = match allowed(pid, driver, seizing) {
        Ok(()) => return Ok(()),
        Err(refusal) => refusal,
    };
    // A process that is exiting has no memory and cannot be traced, which looks like another reason.
    for _ in 0..CHECKS_FOR_END {
        match refusal {
            Refusal::NoProcess { .. } | Refusal::Ended { .. } | Refusal::Own { .. } => break,
            _ if Status::read(pid).is_none_or(|status| status.has_ended()) => {
                return allowed(pid, driver, seizing);
            }
            other => refusal = other,
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Err(refusal)
}

/// Whether processes that this process starts may be traced and read, as far as this can be known in advance.
pub fn may_trace_children() -> bool {
    // No process has this id: a permitted call fails with ESRCH, a refused one with another error.
    const NOBODY: u32 = i32::MAX as u32;
    let is_missing = |error: io::Error| error.raw_os_error() == Some(libc::ESRCH);
    let may_seize = ptrace::seize(NOBODY).err().is_some_and(is_missing);
    let may_read = is_own_memory_readable();
    let capable = Status::own().capabilities & CAN_TRACE != 0;
    may_seize && may_read && (yama_scope() <= 1 || (yama_scope() == 2 && capable))
}

/// Number of checks, 2 ms apart, for the end of a process that could not be accessed.
const CHECKS_FOR_END: usize = 5;

fn allowed(pid: u32, driver: Driver, seizing: &Seizing) -> Result<(), Refusal> {
    let Some(status) = Status::read(pid) else { return Err(missing(pid)) };
    let name = status.name.clone();
    if status.process == std::process::id() {
        return Err(Refusal::Own { pid });
    }
    if status.has_ended() && threads::list(pid).len() < 2 {
        return Err(Refusal::Ended { pid, name });
    }
    if !status.has_memory && !status.has_ended() && Status::is_kernel_thread(pid) {
        return Err(Refusal::Kernel { pid, name });
    }
    // It is ending: its memory is gone already, and it is no zombie yet.
    if process::living_thread(pid).is_none_or(|tid| Status::read(tid).is_none_or(|it| !it.has_memory)) {
        return Err(Refusal::Ended { pid, name });
    }
    let traced = status.tracer != 0 && !is_ours(status.tracer);
    if traced && driver == Driver::Ptrace {
        return Err(traced_by(pid, name, status.tracer));
    }
    let living = process::living_thread(pid).unwrap_or(pid);
    if let Err(error) = try_to_read(living) {
        return Err(why(pid, &status, error));
    }
    if is_narrow(living) {
        return Err(Refusal::Narrow { pid, name });
    }
    if !std::path::Path::new(&format!("/proc/{pid}/schedstat")).exists() {
        return Err(Refusal::NoAccount { pid });
    }
    if driver != Driver::Ptrace || status.tracer != 0 {
        return Ok(());
    }
    match try_to_seize(living, seizing) {
        // That thread may have ended meanwhile.
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(why(pid, &status, error)),
        _ => Ok(()),
    }
}

/// The rule by which the kernel has refused to trace a thread of the process with `error`.
pub(super) fn refused(pid: u32, error: io::Error) -> Refusal {
    match Status::read(pid) {
        Some(status) => why(pid, &status, error),
        None => missing(pid),
    }
}

/// A refusal that names the process of a tracer; `tracer` is the id of a thread.
fn traced_by(pid: u32, name: String, tracer: u32) -> Refusal {
    let tracer = process_of(tracer);
    let tracer_name = Status::read(tracer).map_or_else(String::new, |tracer| tracer.name);
    Refusal::Traced { pid, name, tracer, tracer_name }
}

/// The refusal for the second Stackglass that wants to trace a process.
pub(super) fn taken(pid: u32, mode: AttachMode) -> Refusal {
    match Status::read(pid) {
        // The tracer is known.
        Some(status) if mode == AttachMode::Long && status.tracer != 0 => {
            traced_by(pid, status.name, status.tracer)
        }
        status => Refusal::Taken { pid, name: status.map(|status| status.name).unwrap_or_default(), mode },
    }
}

/// Whether a thread is traced by this process.
pub(super) fn is_traced_by_us(tid: u32) -> bool {
    Status::read(tid).is_some_and(|status| status.tracer != 0 && is_ours(status.tracer))
}

/// Whether a tracer is a thread of this process.
fn is_ours(tracer: u32) -> bool {
    Status::read(tracer).is_some_and(|status| status.process == std::process::id())
}

/// A process that is not visible may be hidden (mount option hidepid).
fn missing(pid: u32) -> Refusal {
    // SAFETY: signal 0 is not sent; the call only checks whether the process exists.
    let answer = unsafe { libc::kill(pid as libc::pid_t, 0) };
    let hidden = answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    if hidden && pid != 0 && pid <= i32::MAX as u32 {
        let owner = "another user, whose processes are hidden here (/proc is mounted with hidepid)".into();
        return Refusal::OtherUser { pid, name: "?".into(), owner };
    }
    Refusal::NoProcess { pid }
}

/// Reads a byte of its memory, as reading stacks does.
fn try_to_read(pid: u32) -> io::Result<()> {
    // If the process has ended meanwhile, nothing is mapped.
    let first = maps::read(pid)?.into_iter().find(|mapping| mapping.readable);
    let Some(first) = first else { return Ok(()) };
    match read_process(pid as i32, first.range.start, &mut [0]) {
        1 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

/// Tries to trace it, from a thread that ends at once, which detaches again. The process is not stopped or notified.
fn try_to_seize(pid: u32, seizing: &Seizing) -> io::Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || seizing.try_to_seize(pid))?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has failed")))
    })
}

fn is_narrow(pid: u32) -> bool {
    let mut head = [0u8; 5];
    let read = fs::File::open(format!("/proc/{pid}/exe"))
        .and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head.starts_with(b"\x7fELF\x01")
}

/// The rule that refused access.
fn why(pid: u32, status: &Status, error: io::Error) -> Refusal {
    let name = status.name.clone();
    if !matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) {
        return if Status::read(pid).is_none_or(|status| status.has_ended()) {
            Refusal::NoProcess { pid }
        } else {
            Refusal::Other { pid, name, error }
        };
    }
    if let Some(tracer) = Status::read(pid).map(|status| status.tracer).filter(|tracer| *tracer != 0) {
        return traced_by(pid, name, tracer);
    }
    let own = Status::own();
    reason(pid, name, &own, status.user, yama_scope(), owner_of_files(pid), error)
}

/// The rule that refused access, derived from the status of both sides.
fn reason(
    pid: u32,
    name: String,
    own: &Status,
    user: u32,
    yama: u32,
    files_of: u32,
    error: io::Error,
) -> Refusal {
    let capable = own.capabilities & CAN_TRACE != 0;
    if error.raw_os_error() == Some(libc::ENOSYS) {
        return Refusal::Filtered { pid, name };
    }
    match (yama, capable) {
        (3, _) => return Refusal::YamaNobody,
        (2, false) if own.user != 0 => return Refusal::YamaRoot { pid, name },
        _ => {}
    }
    if own.user == 0 && !capable {
        return Refusal::NoCapability { pid, name };
    }
    if own.user != 0 && own.user != user {
        return Refusal::OtherUser { pid, name, owner: user_name(user) };
    }
    if !capable && files_of != user {
        return Refusal::NotDumpable { pid, name };
    }
    if !capable && yama == 1 {
        return Refusal::YamaParents { pid, name };
    }
    if own.confined {
        return Refusal::Filtered { pid, name };
    }
    Refusal::Forbidden { pid, name }
}

/// Whether this process may read memory by `/proc/PID/mem`, tried on itself.
pub fn is_own_memory_readable() -> bool {
    try_to_read(std::process::id()).is_ok()
}

/// `kernel.yama.ptrace_scope`; 0 if the kernel has no Yama.
pub fn yama_scope() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Owner of the process's files in `/proc`: root if the process is not dumpable.
fn owner_of_files(pid: u32) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}/mem")).map_or(0, |meta| meta.uid())
}

/// `alice (user id 1000)`.
fn user_name(user: u32) -> String {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user.to_string()).then(|| name.to_owned())
    });
    name.map_or_else(|| format!("user id {user}"), |name| format!("{name} (user id {user})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_for(
        own_user: u32,
        capabilities: u64,
        user: u32,
        yama: u32,
        files_of: u32,
        errno: i32,
    ) -> String {
        let own = Status { user: own_user, capabilities, ..Status::default() };
        let error = io::Error::from_raw_os_error(errno);
        reason(7, "srv".into(), &own, user, yama, files_of, error).to_string()
    }

    #[test]
    fn the_rule_that_holds_is_named_with_its_remedy() {
        let eperm = libc::EPERM;
        for (line, part) in [
            (reason_for(1000, 0, 0, 0, 0, eperm), "belongs to root (user id 0): use sudo"),
            (reason_for(1000, 0, 1001, 1, 1001, eperm), "user id 1001"),
            (reason_for(1000, 0, 1000, 1, 1000, eperm), "sysctl kernel.yama.ptrace_scope=0"),
            (reason_for(1000, 0, 1000, 2, 1000, eperm), "ptrace_scope is 2"),
            (reason_for(0, CAN_TRACE, 0, 3, 0, eperm), "ptrace_scope is 3"),
            (reason_for(0, 0, 0, 1, 0, eperm), "--cap-add SYS_PTRACE"),
            (reason_for(1000, 0, 1000, 0, 0, eperm), "is not accessible to its own user"),
            (reason_for(0, CAN_TRACE, 0, 0, 0, libc::ENOSYS), "seccomp"),
            (reason_for(0, CAN_TRACE, 0, 0, 0, eperm), "AppArmor"),
        ] {
            assert!(line.contains(part), "{line}");
            assert_eq!(line.lines().count(), 1);
        }
    }

    #[test]
    fn who_cannot_be_looked_at_is_told_apart() {
        assert!(matches!(check(std::process::id(), Driver::Ptrace), Err(Refusal::Own { .. })));
        assert!(matches!(check(0x3fff_ffff, Driver::Ptrace), Err(Refusal::NoProcess { .. })));
        assert!(matches!(check(0, Driver::Ptrace), Err(Refusal::NoProcess { .. })));
        let mut child = crate::ended_child::ended_child();
        assert!(matches!(check(child.id(), Driver::Ptrace), Err(Refusal::Ended { .. })));
        child.wait().unwrap();
    }

    #[test]
    fn asking_leaves_no_trace() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // Between fork and exec, the child still is this program.
        let sleeps = || Status::read(child.id()).is_some_and(|s| s.name == "sleep" && s.state == b'S');
        while !sleeps() {
            std::thread::yield_now();
        }
        check(child.id(), Driver::Ptrace).unwrap();
        let start = std::time::Instant::now();
        // It may not have reached its sleep yet.
        let untouched = || Status::read(child.id()).is_some_and(|now| now.tracer == 0 && now.state == b'S');
        while !untouched() && start.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        let untouched = untouched();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(untouched);
    }
}
