//! Stops or copies a process, and ends that.
//!
//! The kernel ties a traced task to one task of the tracer. A thread that was not stopped is let go only when that task ends.
//! So a task of its own ([`task`](super::task)) stops the process, makes the copy, and ends. The copy is then traced by
//! a thread ([`Job`]), which waits for the end of its use, of the program, or of the copy.
//!
//! If all threads sleep in system calls, nobody can make the copy, and nothing changes the memory. The process itself is
//! read then. The first thread that returns is caught before its first instruction, and makes the copy, which is read from there on.

use super::code::BorrowedCode;
use super::copy::{self, Copy, Made};
use super::error::FreezeError;
use super::frozen_threads;
use super::inject::Borrowed;
use super::lender::Lender;
use super::memory::ProcessMemory;
use super::page_reader::PageReader;
use super::request::CopyRequest;
use super::task;
use super::traced::{Method, StoppedThreads};
use super::user_code;
use super::working_set::{OtherPages, WorkingSet};
use super::{Mapping, Options, Pause, View};
use crate::access;
use crate::clock::monotonic;
use crate::deadlock::Seizing;
use crate::driver::Driver;
use crate::perf_refused::PerfRefused;
use crate::ptrace;
use crate::refusal::Refusal;
use crate::tracer_lock::{AttachMode, TracerLock};
use stackglass_perf::user_stop;
use stackglass_procfs::maps;
use stackglass_procfs::{ImageKey, process};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often an exec of the program is looked for.
const EXEC_CHECK: Duration = Duration::from_millis(10);
/// The whole of stopping and copying takes longer only if a call of the program hangs in the kernel.
const LONGEST_TAKE: Duration = Duration::from_secs(60);
/// Attempts to have the program reap its copy, and the time between two.
const REAP_ATTEMPTS: u32 = 20;
const REAP_DELAY: Duration = Duration::from_millis(50);
/// A copy that was killed is reaped by its tracer within this time.
const LONGEST_REAP: Duration = Duration::from_secs(10);
/// Time in which a thread of the program must come to user code to reap its copy.
const REAP_WAIT: Duration = Duration::from_millis(500);
/// Time between two checks whether a thread was caught, or the stop is over.
const CAUGHT_CHECK: Duration = Duration::from_micros(200);
/// A call that has not returned after this time is a long one.
const SHORT_CALL: Duration = Duration::from_millis(1);
/// Time between two checks whether it has returned.
const SHORT_CALL_CHECK: Duration = Duration::from_micros(20);
/// A thread in a call that keeps a processor busy for longer makes no copy.
const LONGEST_CALL: Duration = Duration::from_secs(5);
/// Copies that are made until no thread has run meanwhile.
const MOST_COPIES: u32 = 5;
/// What is made of the process.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A copy; the process continues.
    Copy,
    /// The process stays stopped.
    Stop,
    /// Some pages are read while the process stands still.
    Pages(WorkingSet, OtherPages),
}

impl Kind {
    /// Whether the process, or a copy of it, is held until the end of its use.
    pub(super) fn holds_up(&self) -> bool {
        !matches!(self, Kind::Pages(_, OtherPages::Missing | OtherPages::Live))
    }

    /// Whether the process stays stopped.
    fn keeps_stopped(&self) -> bool {
        matches!(self, Kind::Stop | Kind::Pages(_, OtherPages::Stopped))
    }
}

/// The thread that traces. Dropping it ends the copy or the stop.
pub(super) struct Tracer {
    /// Closed to end it.
    use_end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    is_alive: Arc<AtomicBool>,
    /// Why what was read has ended, if that is known.
    failure: Arc<Mutex<Option<FreezeError>>>,
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
            match Tracer::start_once(pid, kind.clone(), options, until) {
                // The other tracer is asked to detach, or it is a peek that ends soon.
                Err(FreezeError::Refused(Refusal::Traced { .. })) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok((mut tracer, view)) => {
                    tracer.request = kind.keeps_stopped().then_some(request);
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
        let failure: Arc<Mutex<Option<FreezeError>>> = Arc::default();
        let seizing = Arc::new(Seizing::default());
        let (sender, answer) = mpsc::channel();
        let job = Job {
            pid,
            kind,
            method: if options.interrupt_calls { Method::Interrupt } else { Method::UserCode },
            use_end: tracer_end,
            is_alive: is_alive.clone(),
            failure: failure.clone(),
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
                    let (use_end, thread) = (Some(use_end), Some(thread));
                    let tracer = Tracer { use_end, thread, is_alive, failure, request: None };
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

    /// Why what was read has ended, if that is known. It is given once.
    pub(super) fn failure(&self) -> Option<FreezeError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
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
    method: Method,
    /// Its other end is closed when the copy is no longer used.
    use_end: UnixStream,
    is_alive: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<FreezeError>>>,
    seizing: Arc<Seizing>,
}

/// What the task that stops the process reports.
enum Report {
    /// The process stands still, or all of its threads sleep.
    Still(View),
    /// Pages of it were read, and it continues.
    Read(View),
    /// There is a copy. `view` is `None` if it continues what stood still.
    Copied {
        view: Option<View>,
        made: Made,
        code: BorrowedCode,
    },
    Failed(FreezeError),
}

impl Job {
    fn run(self, lock: TracerLock, answer: Sender<Result<View, FreezeError>>) {
        let image = ImageKey::read(self.pid);
        let (sender, reports) = mpsc::channel();
        let end = Arc::new(AtomicBool::new(false));
        let stopping = Stopping {
            pid: self.pid,
            kind: self.kind.clone(),
            method: self.method,
            seizing: self.seizing.clone(),
            end: end.clone(),
            reports: sender,
        };
        let seizing = self.seizing.clone();
        let task = match task::spawn(self.pid, seizing, move |task| stopping.run(task)) {
            Ok(task) => task,
            Err(error) => {
                let what = "no thread can be started";
                return drop(answer.send(Err(FreezeError::Io { what, error })));
            }
        };
        let first = reports.recv().unwrap_or(Report::Failed(FreezeError::Gone { pid: self.pid }));
        let mut copied = None;
        let is_over = matches!(first, Report::Read(_) | Report::Failed(_));
        let view = match first {
            Report::Still(view) | Report::Read(view) => Ok(view),
            Report::Copied { view, made, code } => {
                copied = hold(&made).then_some((made.copy, code));
                view.filter(|_| copied.is_some()).ok_or(FreezeError::Gone { pid: self.pid })
            }
            Report::Failed(error) => Err(error),
        };
        // A copy is ours now, and needs no task.
        let mut task = Some(task);
        let stays = copied.is_some_and(|(copy, _)| copy.is_confined);
        if copied.is_some() && !stays || view.is_err() || is_over {
            end.store(true, Ordering::Release);
            // Others may trace the process from here on.
            drop(task.take().map(JoinHandle::join));
        }
        let is_used = view.is_ok() && !is_over;
        let lock = task.is_some().then_some(lock);
        if answer.send(view).is_ok() && is_used {
            self.wait(&mut copied, image, &reports, &end, &mut task, lock);
        }
        end.store(true, Ordering::Release);
        if let Some((copy, _)) = copied {
            end_own(copy);
        }
        drop(task.take().map(JoinHandle::join));
        // One that nobody has taken over yet.
        for report in reports.try_iter() {
            if let Report::Copied { made, code, .. } = report
                && hold(&made)
            {
                end_own(made.copy);
                copied = Some((made.copy, code));
            }
        }
        if let Some((copy, code)) = copied.filter(|(copy, _)| copy.is_child) {
            self.have_reaped(copy, code);
        }
        self.is_alive.store(false, Ordering::Release);
    }

    /// Waits until the copy is no longer used, or the program or the copy has ended.
    fn wait(
        &self,
        copied: &mut Option<(Copy, BorrowedCode)>,
        image: Option<ImageKey>,
        reports: &Receiver<Report>,
        end: &AtomicBool,
        task: &mut Option<JoinHandle<()>>,
        mut lock: Option<TracerLock>,
    ) {
        let program = open_process(self.pid);
        loop {
            match reports.try_recv() {
                Ok(Report::Copied { made, code, .. }) => {
                    if !hold(&made) {
                        break;
                    }
                    *copied = Some((made.copy, code));
                    if !made.copy.is_confined {
                        end.store(true, Ordering::Release);
                        drop(task.take().map(JoinHandle::join));
                        lock = None;
                    }
                }
                Ok(Report::Failed(error)) => {
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    break;
                }
                _ => {}
            }
            let is_waiting = matches!(self.kind, Kind::Copy) && copied.is_none();
            let timeout = if is_waiting { Duration::from_millis(1) } else { EXEC_CHECK };
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
            let copy_has_ended = copied.is_some_and(|(copy, _)| !process::is_alive(copy.pid));
            if has_ended || copy_has_ended || ImageKey::read(self.pid) != image {
                break;
            }
        }
        self.is_alive.store(false, Ordering::Release);
        drop(lock);
    }

    /// Has the program reap its copy, which it would never do by itself.
    fn have_reaped(&self, copy: Copy, code: BorrowedCode) {
        for _ in 0..REAP_ATTEMPTS {
            if !process_exists(copy.pid) || !process::is_alive(self.pid) {
                break;
            }
            if self.reap_once(copy, code).is_ok() && !process_exists(copy.pid) {
                break;
            }
            std::thread::sleep(REAP_DELAY);
        }
        ptrace::reap(copy.pid);
    }

    fn reap_once(&self, copy: Copy, code: BorrowedCode) -> Result<(), FreezeError> {
        let until = Instant::now() + REAP_DELAY;
        let _request = CopyRequest::make(self.pid, until);
        let _lock = wait_for_lock(self.pid, until)?;
        let (pid, method, seizing) = (self.pid, self.method, self.seizing.clone());
        let (sender, reaped) = mpsc::channel();
        let (stands_still, still) = mpsc::channel();
        let (give_up, given_up) = mpsc::channel();
        let give = move || {
            let _ = stands_still.send(());
            let _ = given_up.recv_timeout(LONGEST_REAP);
        };
        let work = move |task: &task::Task| {
            let _ = sender.send(reap_by_program(pid, method, copy, code, &seizing, task, give));
        };
        let task = task::spawn(pid, self.seizing.clone(), work)
            .map_err(|error| FreezeError::Io { what: "no thread can be started", error })?;
        // Only now, its parent can find it.
        if still.recv_timeout(LONGEST_TAKE).is_ok() {
            ptrace::reap(copy.pid);
            let _ = give_up.send(());
        }
        let _ = task.join();
        reaped.recv().unwrap_or(Err(FreezeError::Gone { pid }))
    }
}

/// Takes a copy over from the task that has made it, unless that has to keep it. `false` if it has ended.
fn hold(made: &Made) -> bool {
    made.copy.is_confined || copy::hold(made)
}

/// Ends a copy that this process traces. One that is a child of the program stays its tracee, so that no wait of the program
/// finds it.
fn end_own(copy: Copy) {
    match (copy.is_confined, copy.is_child) {
        (true, _) => {}
        (false, true) => copy::kill(copy.pid),
        (false, false) => copy::end(copy.pid),
    }
}

/// Makes a thread of the program reap its child, as soon as one runs user code. The child is not to be found before `give`, at
/// which all threads of the program are stopped or sleep.
fn reap_by_program(
    pid: u32,
    method: Method,
    copy: Copy,
    code: BorrowedCode,
    seizing: &Seizing,
    task: &task::Task,
    give: impl FnOnce(),
) -> Result<(), FreezeError> {
    let lender = Lender::with_code(pid, Some(code))?;
    let borrowed = lender.borrowed();
    let mut stopped = StoppedThreads::seize(pid, method, seizing)?;
    let mut result = stopped.stop();
    let until = Instant::now() + REAP_WAIT;
    while result.is_ok() && !stopped.can_call() && Instant::now() < until && !task.is_orphan() {
        std::thread::sleep(CAUGHT_CHECK);
        user_code::refresh(&mut stopped);
    }
    if result.is_ok() {
        wait_for_short_calls(&mut stopped);
        stopped.read_registers();
        result = match borrowed.code.is_intact(borrowed.memory) && stopped.can_call() {
            true => {
                give();
                copy::reap(&borrowed, &stopped, copy.inner_pid)
            }
            false => Err(FreezeError::Gone { pid }),
        };
    }
    stopped.release();
    result
}

/// What the task that stops the process works on.
struct Stopping {
    pid: u32,
    kind: Kind,
    method: Method,
    seizing: Arc<Seizing>,
    /// The process need not be stopped any more.
    end: Arc<AtomicBool>,
    reports: Sender<Report>,
}

impl Stopping {
    fn run(&self, task: &task::Task) {
        if let Err(error) = self.freeze(task) {
            let _ = self.reports.send(Report::Failed(error));
        }
    }

    fn freeze(&self, task: &task::Task) -> Result<(), FreezeError> {
        let seize = || StoppedThreads::seize(self.pid, self.method, &self.seizing);
        let (mut stopped, result);
        match &self.kind {
            Kind::Copy => {
                let lender = Lender::find(self.pid)?;
                stopped = seize()?;
                result = self.copy(&lender, &mut stopped, task);
            }
            Kind::Stop => {
                stopped = seize()?;
                result = self.stop(&mut stopped, task);
            }
            Kind::Pages(set, others) => {
                let pages = PageReader::open(self.pid, set, *others)?;
                stopped = seize()?;
                result = self.pages(&pages, *others, &mut stopped, task);
            }
        }
        stopped.release();
        result
    }

    fn is_over(&self, task: &task::Task) -> bool {
        self.end.load(Ordering::Acquire) || task.is_orphan()
    }

    /// Stops the process, and keeps it so.
    fn stop(&self, stopped: &mut StoppedThreads<'_>, task: &task::Task) -> Result<(), FreezeError> {
        let start = monotonic();
        let view = self.view(stopped, start)?;
        let memory = view.memory.clone();
        let _ = self.reports.send(Report::Still(view));
        self.stay(stopped, task, &memory);
        Ok(())
    }

    /// Keeps the process stopped. Notes if a thread has run in spite of that.
    fn stay(&self, stopped: &mut StoppedThreads<'_>, task: &task::Task, memory: &ProcessMemory) {
        while !self.is_over(task) {
            std::thread::sleep(CAUGHT_CHECK);
            if user_code::may_have_run(stopped) {
                memory.note_change();
            }
            user_code::refresh(stopped);
        }
    }

    /// Reads pages while the process stands still.
    fn pages(
        &self,
        pages: &PageReader<'_>,
        others: OtherPages,
        stopped: &mut StoppedThreads<'_>,
        task: &task::Task,
    ) -> Result<(), FreezeError> {
        let pid = self.pid;
        let start = monotonic();
        stopped.stop()?;
        let mut attempts = 1..MOST_COPIES;
        let (stop, mappings, memory) = loop {
            let stop = since(start);
            stopped.read_registers();
            if ImageKey::read(pid) != pages.image {
                return Err(FreezeError::Gone { pid });
            }
            let mappings = maps::read(pages.living).map_err(FreezeError::cannot_read)?;
            let memory = pages.read(&mappings, stopped);
            if !user_code::may_have_run(stopped) {
                break (stop, mappings, memory);
            }
            if attempts.next().is_none() {
                memory.note_change();
                break (stop, mappings, memory);
            }
            stopped.stop_again()?;
        };
        let view = |stopped: &StoppedThreads<'_>, mappings: Vec<Mapping>, memory, whole| {
            let threads = frozen_threads::as_told(stopped);
            let pause = Pause { stop, clone: Duration::ZERO, whole };
            let unwatched = user_code::unwatched(stopped);
            View { pid, threads, mappings, memory, pause, unwatched }
        };
        if others == OtherPages::Stopped {
            let view = view(stopped, mappings, memory.clone(), stopped.longest_hold());
            let _ = self.reports.send(Report::Still(view));
            self.stay(stopped, task, &memory);
            return Ok(());
        }
        memory.set_other_pages(others);
        let whole = stopped.let_stopped_go();
        let _ = self.reports.send(Report::Read(view(stopped, mappings, memory, whole)));
        Ok(())
    }

    /// The process as it is, once nothing in it changes.
    fn view(&self, stopped: &mut StoppedThreads<'_>, start: u64) -> Result<View, FreezeError> {
        let living = process::living_thread(self.pid).ok_or(FreezeError::Gone { pid: self.pid })?;
        let memory = ProcessMemory::open(living).map_err(FreezeError::cannot_read)?;
        stopped.stop()?;
        let (stop, whole) = (since(start), stopped.longest_hold());
        stopped.read_registers();
        let mappings = maps::read(living).map_err(FreezeError::cannot_read)?;
        let threads = frozen_threads::all(stopped, &mappings, &memory);
        let pause = Pause { stop, clone: Duration::ZERO, whole };
        Ok(View { pid: self.pid, threads, mappings, memory, pause, unwatched: Vec::new() })
    }

    /// Copies the process as soon as one of its threads can make the copy.
    fn copy(
        &self,
        lender: &Lender,
        stopped: &mut StoppedThreads<'_>,
        task: &task::Task,
    ) -> Result<(), FreezeError> {
        let pid = self.pid;
        let borrowed = lender.borrowed();
        let start = monotonic();
        stopped.stop()?;
        let stop = since(start);
        let longest = start + LONGEST_CALL.as_nanos() as u64;
        // A thread in a long call can return at any time, so the memory does not stand still.
        while !stopped.can_call() && stopped.some_in_kernel() {
            if monotonic() > longest || self.is_over(task) {
                return Err(stopped.none_stopped());
            }
            std::thread::sleep(CAUGHT_CHECK);
            user_code::check_again(stopped);
        }
        wait_for_short_calls(stopped);
        stopped.read_registers();
        if ImageKey::read(pid) != lender.image || !borrowed.code.is_intact(borrowed.memory) {
            return Err(FreezeError::Gone { pid });
        }
        if stopped.some_wait_for_all_children() {
            return Err(FreezeError::WaitsForCopies { pid, name: borrowed.name.to_owned() });
        }
        let mut still = None;
        if !stopped.can_call() {
            let view = self.view_of_sleepers(stopped, stop)?;
            still = Some(view.memory.clone());
            let _ = self.reports.send(Report::Still(view));
            while !stopped.can_call() {
                if self.is_over(task) {
                    return Ok(());
                }
                if user_code::may_have_run(stopped) {
                    return Err(self.not_caught());
                }
                std::thread::sleep(CAUGHT_CHECK);
                user_code::refresh(stopped);
            }
            stopped.read_registers();
        }
        let before = monotonic();
        let mut made = self.copy_of_one_moment(&borrowed, stopped, still.is_some()).map_err(|error| {
            // What was looked up before is that of the program which it has replaced meanwhile.
            if ImageKey::read(pid) == lender.image { error } else { FreezeError::Gone { pid } }
        })?;
        let (copy, mappings) = (made.copy, std::mem::take(&mut made.mappings));
        let clone = since(before);
        let memory = match ProcessMemory::open(copy.pid) {
            Ok(memory) => memory,
            Err(error) => {
                copy::discard(&borrowed, stopped, copy);
                return Err(FreezeError::cannot_read(error));
            }
        };
        if let Some(still) = &still {
            still.continue_from(&memory);
        }
        let threads = frozen_threads::all(stopped, &mappings, &memory);
        let whole = stopped.let_stopped_go();
        let pause = Pause { stop, clone, whole };
        let view =
            still.is_none().then_some(View { pid, threads, mappings, memory, pause, unwatched: Vec::new() });
        if copy.is_confined {
            made.put_stack_back();
        } else if copy::hand_over(copy, borrowed.code).is_err() {
            copy::end(copy.pid);
            return Err(FreezeError::Gone { pid });
        }
        let _ = self.reports.send(Report::Copied { view, made, code: borrowed.code });
        while !self.is_over(task) {
            std::thread::sleep(CAUGHT_CHECK);
            user_code::release_caught(stopped);
        }
        if copy.is_confined {
            copy::end(copy.pid);
        }
        Ok(())
    }

    /// A copy during whose making no thread ran.
    fn copy_of_one_moment(
        &self,
        borrowed: &Borrowed<'_>,
        stopped: &mut StoppedThreads<'_>,
        is_only_chance: bool,
    ) -> Result<Made, FreezeError> {
        for attempt in 1.. {
            let made = copy::make(borrowed, stopped)?;
            let has_run = user_code::may_have_run(stopped);
            if !has_run || attempt == MOST_COPIES && !is_only_chance {
                return Ok(made);
            }
            copy::discard(borrowed, stopped, made.copy);
            if is_only_chance {
                break;
            }
            stopped.stop_again()?;
            wait_for_short_calls(stopped);
            stopped.read_registers();
        }
        Err(self.not_caught())
    }

    /// Why a thread that slept was not caught before its first instruction.
    fn not_caught(&self) -> FreezeError {
        let pid = self.pid;
        match user_stop::are_allowed() {
            Err(error) => FreezeError::NoUserStops { pid, refused: PerfRefused::new(error) },
            Ok(()) => FreezeError::Gone { pid },
        }
    }

    /// The process itself, all of whose threads sleep.
    fn view_of_sleepers(&self, stopped: &StoppedThreads<'_>, stop: Duration) -> Result<View, FreezeError> {
        let living = process::living_thread(self.pid).ok_or(FreezeError::Gone { pid: self.pid })?;
        let memory = ProcessMemory::open(living).map_err(FreezeError::cannot_read)?;
        let mappings = maps::read(living).map_err(FreezeError::cannot_read)?;
        let threads = frozen_threads::all(stopped, &mappings, &memory);
        let pause = Pause { stop, clone: Duration::ZERO, whole: Duration::ZERO };
        let unwatched = user_code::unwatched(stopped);
        Ok(View { pid: self.pid, threads, mappings, memory, pause, unwatched })
    }
}

/// Waits until threads have returned from short calls, and were caught. A thread that makes one short call after the other is in one now
/// and then when it is found; it needs a CPU to return.
fn wait_for_short_calls(stopped: &mut StoppedThreads<'_>) {
    let start = monotonic();
    while stopped.some_in_kernel() && since(start) < SHORT_CALL {
        std::thread::sleep(SHORT_CALL_CHECK);
        user_code::refresh(stopped);
    }
}

fn since(start: u64) -> Duration {
    Duration::from_nanos(monotonic().saturating_sub(start))
}

/// A descriptor that becomes readable when the process ends; `None` on kernels before 5.3.
fn open_process(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a call with integers; a result that is not negative is a descriptor that nothing else owns.
    unsafe {
        let file = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (file >= 0).then(|| OwnedFd::from_raw_fd(file as i32))
    }
}

/// Whether a process with this id exists, zombies included.
fn process_exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
