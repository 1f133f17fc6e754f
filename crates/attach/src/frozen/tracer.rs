//! The thread that traces: it stops the process, keeps the copy, and ends it.
//!
//! The kernel ties a traced task to one thread, and detaches or kills it when that thread ends. So one thread does all of
//! it, and waits in between for the end of the copy's use, of the program, or of the copy.

use super::code::BorrowedCode;
use super::copy::{self, Copy};
use super::error::FreezeError;
use super::inject::Borrowed;
use super::memory::ProcessMemory;
use super::request::CopyRequest;
use super::stop::{State, StoppedThreads};
use super::{FrozenThread, Options, Pause, View};
use crate::access;
use crate::clock::monotonic;
use crate::deadlock::Seizing;
use crate::driver::Driver;
use crate::refusal::Refusal;
use crate::tracer_lock::{AttachMode, TracerLock};
use stackglass_procfs::maps;
use stackglass_procfs::{ImageKey, Status, process, threads};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often an exec of the program is looked for.
const EXEC_CHECK: Duration = Duration::from_millis(10);
/// The whole of stopping and copying takes longer only if a call of the program hangs in the kernel.
const LONGEST_TAKE: Duration = Duration::from_secs(60);
/// Attempts to have the program reap its copy, and the time between two.
const REAP_ATTEMPTS: u32 = 20;
const REAP_DELAY: Duration = Duration::from_millis(50);
/// CAP_SYS_ADMIN as a bit.
const SYS_ADMIN: u64 = 1 << 21;

/// What is made of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A copy; the process continues.
    Copy,
    /// The process stays stopped.
    Stop,
}

/// The thread that traces. Dropping it ends the copy or the stop.
pub(super) struct Tracer {
    /// Closed to end it.
    use_end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    is_alive: Arc<AtomicBool>,
    /// Samplers stay away while the process is stopped.
    request: Option<CopyRequest>,
}

impl Tracer {
    /// Stops or copies a process.
    ///
    /// # Errors
    /// If that is not possible. The process then continues.
    pub(super) fn start(pid: u32, kind: Kind, options: &Options) -> Result<(Tracer, View), FreezeError> {
        let until = Instant::now() + options.wait;
        // Samplers let the process go as long as this lives.
        let Some(request) = CopyRequest::make(pid, until) else {
            return Err(access::taken(pid, AttachMode::Brief).into());
        };
        loop {
            match Tracer::start_once(pid, kind, options, until) {
                // The other tracer is asked to detach, or it is a peek that ends soon.
                Err(FreezeError::Refused(Refusal::Traced { .. })) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok((mut tracer, view)) => {
                    tracer.request = (kind == Kind::Stop).then_some(request);
                    return Ok((tracer, view));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn start_once(
        pid: u32,
        kind: Kind,
        options: &Options,
        until: Instant,
    ) -> Result<(Tracer, View), FreezeError> {
        let lock = wait_for_lock(pid, until)?;
        access::check(pid, Driver::Ptrace)?;
        let (use_end, tracer_end) = UnixStream::pair()
            .map_err(|error| FreezeError::Io { what: "no socket can be created", error })?;
        let is_alive = Arc::new(AtomicBool::new(true));
        let seizing = Arc::new(Seizing::default());
        let (sender, answer) = mpsc::channel();
        let job = Job {
            pid,
            kind,
            leave: options.leave.clone(),
            use_end: tracer_end,
            is_alive: is_alive.clone(),
            seizing: seizing.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("stackglass-copy".into())
            .spawn(move || job.run(lock, sender))
            .map_err(|error| FreezeError::Io { what: "no thread can be started", error })?;
        let start = Instant::now();
        loop {
            match answer.recv_timeout(Duration::from_millis(2)) {
                Ok(Ok(view)) => {
                    let tracer =
                        Tracer { use_end: Some(use_end), thread: Some(thread), is_alive, request: None };
                    return Ok((tracer, view));
                }
                Ok(Err(error)) => {
                    // The process is free of us when the thread has ended.
                    let _ = thread.join();
                    return Err(error);
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() < LONGEST_TAKE => seizing.help(pid),
                Err(_) => return Err(FreezeError::Stuck { pid }),
            }
        }
    }

    /// Whether the copy or the stopped process still exists.
    pub(super) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Acquire)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.use_end = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic with anything that matters here: the kernel has ended the copy.
            let _ = thread.join();
        }
        self.request = None;
    }
}

/// Takes the lock of the tracer. Another Stackglass that holds it is waited for.
fn wait_for_lock(pid: u32, until: Instant) -> Result<TracerLock, FreezeError> {
    loop {
        match TracerLock::take(pid, AttachMode::Brief) {
            Ok(lock) => return Ok(lock),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            Err(mode) => return Err(access::taken(pid, mode).into()),
        }
    }
}

/// What the thread works on.
struct Job {
    pid: u32,
    kind: Kind,
    /// Threads that are not stopped.
    leave: Vec<u32>,
    /// Its other end is closed when the copy is no longer used.
    use_end: UnixStream,
    is_alive: Arc<AtomicBool>,
    seizing: Arc<Seizing>,
}

impl Job {
    fn run(self, lock: TracerLock, answer: Sender<Result<View, FreezeError>>) {
        let mut stopped = match StoppedThreads::seize(self.pid, &self.leave, &self.seizing) {
            Ok(stopped) => stopped,
            Err(error) => return drop(answer.send(Err(error))),
        };
        match self.kind {
            Kind::Stop => {
                let image = ImageKey::read(self.pid);
                let view = self.stop(&mut stopped);
                let is_stopped = view.is_ok();
                if answer.send(view).is_ok() && is_stopped {
                    self.wait(None, image, &mut stopped);
                }
                stopped.release();
            }
            Kind::Copy => match self.copy(&mut stopped) {
                Ok((view, copy, code, image)) => {
                    // Others may trace the process from here on.
                    drop(lock);
                    if answer.send(Ok(view)).is_ok() {
                        self.wait(Some(copy), image, &mut stopped);
                    }
                    copy::end(copy.pid);
                    drop(stopped);
                    if copy.is_child {
                        self.have_reaped(copy, code);
                    }
                }
                Err(error) => {
                    stopped.release();
                    drop(answer.send(Err(error)));
                }
            },
        }
        self.is_alive.store(false, Ordering::Release);
    }

    /// Stops the process, and looks at it.
    fn stop(&self, stopped: &mut StoppedThreads<'_>) -> Result<View, FreezeError> {
        let living = process::living_thread(self.pid).ok_or(FreezeError::Gone { pid: self.pid })?;
        let memory = ProcessMemory::open(living).map_err(cannot_read)?;
        let start = monotonic();
        stopped.stop()?;
        let whole = since(start);
        stopped.read_registers();
        let mappings = maps::read(living).map_err(cannot_read)?;
        let pause = Pause { stop: whole, clone: Duration::ZERO, whole };
        Ok(View { pid: self.pid, threads: frozen_threads(stopped), mappings, memory, pause })
    }

    /// Copies the process.
    fn copy(
        &self,
        stopped: &mut StoppedThreads<'_>,
    ) -> Result<(View, Copy, BorrowedCode, Option<ImageKey>), FreezeError> {
        let pid = self.pid;
        let lender = Lender::find(pid)?;
        let borrowed = lender.borrowed();
        let start = monotonic();
        stopped.stop()?;
        let stop = since(start);
        stopped.read_registers();
        let image = ImageKey::read(pid);
        if image != lender.image || !borrowed.code.is_intact(borrowed.memory) {
            return Err(FreezeError::Gone { pid });
        }
        let before = monotonic();
        let made = copy::make(&borrowed, stopped);
        let clone = since(before);
        stopped.release();
        let pause = Pause { stop, clone, whole: since(start) };
        let copy = made?;
        let look = || Ok((maps::read(copy.pid)?, ProcessMemory::open(copy.pid)?));
        match look() {
            Ok((mappings, memory)) => {
                let view = View { pid, threads: frozen_threads(stopped), mappings, memory, pause };
                Ok((view, copy, borrowed.code, image))
            }
            Err(error) => {
                copy::end(copy.pid);
                Err(cannot_read(error))
            }
        }
    }

    /// Waits until the copy is no longer used, or the program or the copy has ended.
    fn wait(&self, copy: Option<Copy>, image: Option<ImageKey>, stopped: &mut StoppedThreads<'_>) {
        let program = open_process(self.pid);
        loop {
            let some_wait = copy.is_some() && stopped.release_late();
            let timeout = if some_wait { Duration::from_millis(1) } else { EXEC_CHECK };
            let mut files = [
                libc::pollfd { fd: self.use_end.as_raw_fd(), events: libc::POLLIN, revents: 0 },
                libc::pollfd {
                    fd: program.as_ref().map_or(-1, OwnedFd::as_raw_fd),
                    events: libc::POLLIN,
                    revents: 0,
                },
            ];
            // SAFETY: the kernel reads and writes the two live elements.
            let ready = unsafe { libc::poll(files.as_mut_ptr(), 2, timeout.as_millis() as i32) };
            if ready > 0 && files[0].revents != 0 {
                return;
            }
            let has_ended = ready > 0 && files[1].revents != 0;
            let copy_has_ended = copy.is_some_and(|copy| crate::ptrace::next_stop(copy.pid).is_err());
            if has_ended || copy_has_ended || ImageKey::read(self.pid) != image {
                self.is_alive.store(false, Ordering::Release);
                return;
            }
        }
    }

    /// Has the program reap its copy, which it would never do by itself.
    fn have_reaped(&self, copy: Copy, code: BorrowedCode) {
        for _ in 0..REAP_ATTEMPTS {
            if !process_exists(copy.pid) || !process::is_alive(self.pid) {
                return;
            }
            if self.reap_once(copy, code).is_ok() && !process_exists(copy.pid) {
                return;
            }
            std::thread::sleep(REAP_DELAY);
        }
    }

    fn reap_once(&self, copy: Copy, code: BorrowedCode) -> Result<(), FreezeError> {
        let until = Instant::now() + REAP_DELAY;
        let _request = CopyRequest::make(self.pid, until);
        let _lock = wait_for_lock(self.pid, until)?;
        let lender = Lender::with_code(self.pid, Some(code))?;
        let borrowed = lender.borrowed();
        let mut stopped = StoppedThreads::seize_one(self.pid, &self.seizing)?;
        stopped.stop_traced()?;
        stopped.read_registers();
        let reaped = match borrowed.code.is_intact(borrowed.memory) {
            true => copy::reap(&borrowed, &stopped, copy.inner_pid),
            false => Err(FreezeError::Gone { pid: self.pid }),
        };
        stopped.release();
        reaped
    }
}

/// What is looked up before the process stops.
struct Lender {
    pid: u32,
    status: Status,
    memory: ProcessMemory,
    code: BorrowedCode,
    main_stack: Option<super::Mapping>,
    image: Option<ImageKey>,
    can_suspend_seccomp: bool,
}

impl Lender {
    fn find(pid: u32) -> Result<Lender, FreezeError> {
        Lender::with_code(pid, None)
    }

    fn with_code(pid: u32, code: Option<BorrowedCode>) -> Result<Lender, FreezeError> {
        let gone = || FreezeError::Gone { pid };
        let image = ImageKey::read(pid);
        let living = process::living_thread(pid).ok_or_else(gone)?;
        let main = Status::read(pid).ok_or_else(gone)?;
        let name = main.name;
        // The status of a main thread that has ended lists no features.
        let status = Status { innermost_pid: main.innermost_pid, ..Status::read(living).ok_or_else(gone)? };
        if status.has_shadow_stack {
            return Err(FreezeError::ShadowStack { pid, name });
        }
        let can_suspend_seccomp = can_suspend_seccomp();
        if !can_suspend_seccomp && every_thread_is_confined(pid) {
            return Err(FreezeError::Filtered { pid, name });
        }
        if has_other_namespace_for_children(living) {
            return Err(FreezeError::ChildNamespace { pid, name });
        }
        let mappings = maps::read(living).map_err(cannot_read)?;
        let memory = ProcessMemory::open_writable(living).map_err(cannot_read)?;
        let code = code.or_else(|| BorrowedCode::find(&mappings, &memory));
        let code = code.ok_or_else(|| FreezeError::NoCode { pid, name: name.clone() })?;
        let main_stack = mappings.into_iter().find(|mapping| mapping.path == "[stack]");
        let status = Status { name, ..status };
        Ok(Lender { pid, status, memory, code, main_stack, image, can_suspend_seccomp })
    }

    fn borrowed(&self) -> Borrowed<'_> {
        Borrowed {
            pid: self.pid,
            name: &self.status.name,
            code: self.code,
            memory: &self.memory,
            main_stack: self.main_stack.clone(),
            can_suspend_seccomp: self.can_suspend_seccomp,
            is_first_of_namespace: self.status.innermost_pid == 1,
        }
    }
}

/// Whether this process may suspend seccomp for others (`PTRACE_O_SUSPEND_SECCOMP`). In a user namespace, the kernel
/// refuses it nevertheless.
fn can_suspend_seccomp() -> bool {
    let own = Status::own();
    own.capabilities & SYS_ADMIN != 0 && !own.confined
}

/// Whether seccomp confines all threads.
fn every_thread_is_confined(pid: u32) -> bool {
    let statuses = threads::list(pid).into_iter().filter_map(Status::read);
    statuses.filter(|status| !status.has_ended()).all(|status| status.confined)
}

fn cannot_read(error: io::Error) -> FreezeError {
    FreezeError::Io { what: "the memory of the process cannot be read", error }
}

fn since(start: u64) -> Duration {
    Duration::from_nanos(monotonic().saturating_sub(start))
}

/// The threads as they were stopped, the main thread first.
fn frozen_threads(stopped: &StoppedThreads<'_>) -> Vec<FrozenThread> {
    let listed =
        stopped.threads.iter().filter(|thread| thread.registers.is_some() || thread.state == State::InKernel);
    listed
        .map(|thread| FrozenThread {
            tid: thread.tid,
            name: thread.name.clone(),
            registers: thread.registers.as_ref().map(words),
        })
        .collect()
}

fn words(r: &libc::user_regs_struct) -> [u64; 27] {
    [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi,
        r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs, r.gs,
    ]
}

/// A descriptor that becomes readable when the process ends; `None` on kernels before 5.3.
fn open_process(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a call with integers; a result that is not negative is a descriptor that nothing else owns.
    unsafe {
        let file = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (file >= 0).then(|| OwnedFd::from_raw_fd(file as i32))
    }
}

/// Whether children of a thread are in another pid namespace than the thread. That namespace ends with its first process: no other
/// can be created then.
fn has_other_namespace_for_children(tid: u32) -> bool {
    let namespace = |task: &str, name: &str| std::fs::read_link(format!("/proc/{task}/ns/{name}"));
    let task = tid.to_string();
    let Ok(own) = namespace(&task, "pid") else { return false };
    match namespace(&task, "pid_for_children") {
        Ok(of_children) => of_children != own,
        // There is no such file while that namespace is empty, and on kernels before 4.12.
        Err(_) => namespace("self", "pid_for_children").is_ok(),
    }
}

/// Whether a process with this id exists, zombies included.
fn process_exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
