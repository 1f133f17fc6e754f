//! Starts the program. Its environment gets the preload library and the session; everything else stays as this
//! process inherited it.

use super::environment::Environment;
use super::inherited;
use super::options::Options;
use super::program::Program;
use crate::session::Session;
use crate::session::signals::Signals;
use stackglass_procfs::process::descends_from;
use stackglass_profile::{End, Nanos};
use stackglass_wire::SESSION_ENV;
use std::ffi::{OsStr, OsString, c_char};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;

unsafe extern "C" {
    /// The environment of this process (environ(7)).
    static mut environ: *const *const c_char;
}

/// A started program.
pub struct Child {
    pid: libc::pid_t,
    end: Option<(End, Nanos)>,
}

/// Starts the program of `options`. It shares standard streams, process group and terminal with this process.
/// `library` is preloaded, `mask` is its signal mask.
///
/// # Errors
/// Those of execve(2).
pub fn start(
    options: &Options,
    session: &Session,
    library: Option<&Path>,
    mask: libc::sigset_t,
) -> io::Result<Child> {
    let mut command = Command::new(&options.program.path);
    command.arg0(&options.program.name).args(&options.arguments);
    if let Some(folder) = &options.folder {
        command.current_dir(folder);
    }
    let mut environment = Environment::inherited();
    options.variables.iter().for_each(|(name, value)| environment.set(name, value));
    if let Some(library) = library {
        environment.set(OsStr::new(SESSION_ENV), session.folder().as_os_str());
        let library = reachable(library, session)?;
        let preloaded = with_ours_first(library.as_os_str(), std::env::var_os("LD_PRELOAD"));
        environment.set(OsStr::new("LD_PRELOAD"), &preloaded);
        environment.set(OsStr::new("ASAN_OPTIONS"), &with_any_order(std::env::var_os("ASAN_OPTIONS")));
    }
    let variables = environment.pointers();
    let variables = variables.as_ptr().expose_provenance();
    // The page stays mapped until exec, and the session outlives the call.
    let only: *const std::sync::atomic::AtomicU32 = &session.page().only_pid;
    let only = only.expose_provenance();
    // SAFETY: between fork and exec, the closure makes system calls, stores one word of shared memory and one of its own; it does not
    // allocate or take locks. `only` points into a mapping that the child inherits, `variables` at a list that lives until `spawn` returns.
    unsafe {
        command.pre_exec(move || {
            let only = &*std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicU32>(only);
            only.store(libc::getpid() as u32, Relaxed);
            inherited::restore();
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            // `Command` has no variables of its own, so that exec takes these.
            environ = std::ptr::with_exposed_provenance(variables);
            Ok(())
        });
    }
    let child = command.spawn()?;
    Ok(Child { pid: child.id() as libc::pid_t, end: None })
}

/// Starts a program that is sampled from outside. Nothing runs inside it, and its standard streams are `/dev/null`.
/// Its signal mask is the one from before `signals`.
///
/// # Errors
/// Those of execve(2).
pub fn start_apart(program: &Program, arguments: &[OsString], signals: &Signals) -> io::Result<Child> {
    let mut command = Command::new(&program.path);
    command.arg0(&program.name).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mask = signals.mask_before();
    // SAFETY: between fork and exec, the closure makes system calls; it does not allocate or take locks.
    unsafe {
        command.pre_exec(move || {
            inherited::restore_signals();
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            Ok(())
        });
    }
    let child = command.spawn()?;
    Ok(Child { pid: child.id() as libc::pid_t, end: None })
}

impl Child {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// How it ended, and the CPU time of the program and the children it waited for; `None` while it runs.
    pub fn ended(&mut self) -> Option<(End, Nanos)> {
        if self.end.is_none() && self.has_ended() {
            let mut status = 0;
            // SAFETY: an all-zero rusage is a value; both are live and filled by the kernel.
            let (pid, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(self.pid, &mut status, libc::WNOHANG, &mut usage), usage)
            };
            if pid == self.pid && !libc::WIFSTOPPED(status) {
                let end = if libc::WIFSIGNALED(status) {
                    End::Signal(libc::WTERMSIG(status))
                } else {
                    End::Exit(libc::WEXITSTATUS(status))
                };
                self.end = Some((end, Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime))));
            }
        }
        self.end
    }

    /// Whether it has ended and waits for its exit status to be read. If a thread of this process traces it, stops
    /// are reported here as well; they are left to that thread.
    fn has_ended(&self) -> bool {
        // SAFETY: an all-zero siginfo is a value, and the kernel fills it.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let which = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, which) != 0
                || matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED)
        }
    }

    /// A descriptor that becomes readable when it ends; `None` before Linux 5.3.
    pub fn end_descriptor(&self) -> Option<OwnedFd> {
        // SAFETY: no pointers; the descriptor is new and not shared.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, self.pid, 0);
            (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
        }
    }

    /// Whether a process is the program or a descendant of it, as far as the parents still exist.
    pub fn has_started(&self, process: u32) -> bool {
        process != 0 && descends_from(process, self.pid())
    }

    /// Sends a signal to the program while it runs.
    pub fn send(&self, signal: i32) {
        if self.end.is_none() {
            // SAFETY: the child was not waited for, so its process id was not reused.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// Tells the program that the terminal is gone. The kernel signals only the leader of the session, which the
    /// program would be without this process, and the others when the leader ends.
    pub fn hang_up(&self) {
        // SAFETY: system calls without pointers.
        if unsafe { libc::getsid(0) == libc::getpid() } {
            self.send(libc::SIGHUP);
            // As the kernel does: a stopped program continues and receives the signal.
            self.send(libc::SIGCONT);
        }
    }
}

fn nanos(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// LD_PRELOAD is split at blanks and colons. A path with one of them gets a plain link in the session folder.
fn reachable(library: &Path, session: &Session) -> io::Result<std::path::PathBuf> {
    if !library.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':')) {
        return Ok(library.to_path_buf());
    }
    let link = session.folder().join("library.so");
    std::os::unix::fs::symlink(library, &link)?;
    Ok(link)
}

/// Puts the library before the user's own LD_PRELOAD, without repeating it.
fn with_ours_first(ours: &OsStr, theirs: Option<OsString>) -> OsString {
    let mut all = ours.to_os_string();
    if let Some(theirs) = theirs {
        for entry in theirs.as_bytes().split(|b| matches!(b, b' ' | b':')) {
            if !entry.is_empty() && entry != ours.as_bytes() {
                all.push(":");
                all.push(OsStr::from_bytes(entry));
            }
        }
    }
    all
}

/// AddressSanitizer ends a program in which its own library is not the first one, unless this option is set. Children of the
/// program may be built with it.
fn with_any_order(theirs: Option<OsString>) -> OsString {
    let mut all = OsString::from("verify_asan_link_order=0");
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        all.push(":");
        all.push(theirs);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_libraries_are_kept() {
        let join = |theirs: Option<&str>| {
            with_ours_first(OsStr::new("/a/ours.so"), theirs.map(OsString::from)).into_string().unwrap()
        };
        assert_eq!(join(None), "/a/ours.so");
        assert_eq!(join(Some("")), "/a/ours.so");
        assert_eq!(join(Some("libx.so:/b/y.so")), "/a/ours.so:libx.so:/b/y.so");
        assert_eq!(join(Some("/a/ours.so /b/y.so")), "/a/ours.so:/b/y.so");
    }
}
