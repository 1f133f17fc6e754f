//! Records one program from its start to its end: start it, run the recording loop, pass signals on, finish the file.
//!
//! The recording ends with the program, after `--duration`, on the second Ctrl-C, or after a signal that ends this process.
//! The program is always waited for.

use super::backend::Backend;
use super::error::LaunchError;
use super::heap_at::HeapSnapshots;
use super::library::Library;
use super::options::Options;
use super::start::{self, Child};
use super::stream_peeks::StreamPeeks;
use super::takeover::Takeover;
use super::unsampled::CpuTimes;
use super::{own_allocator, stolen_time, unaccounted_cpu};
use crate::allocations::AllocationSettings;
use crate::allocations::drain::AllocationDrain;
use crate::recording::Observer;
use crate::recording::begin::beginning_now;
use crate::recording::recording_file::RecordingFile;
use crate::recording::recording_loop::{Limits, RecordingLoop, Source, set_end};
use crate::session::signals::{Signal, Signals};
use crate::session::{Session, clearing};
use stackglass_files::{GlassWriter, WriteError};
use stackglass_procfs::{Status, threads};
use stackglass_profile::{Allocations, End, Nanos, Recorder, RecordingInfo};
use stackglass_wire::{STREAM_BYTES, SessionState};
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Time that a program gets to end after a signal, before the recording is finished without it.
const GRACE: Duration = Duration::from_secs(2);
/// Time that samplers get to write their last events.
const LAST_EVENTS: Duration = Duration::from_millis(100);

/// Starts the program, records it, and waits for it.
///
/// # Errors
/// Only before the program is started; later problems are reported to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<End, LaunchError> {
    let signals = Signals::block().map_err(LaunchError::Signals)?;
    let session = Session::create().map_err(LaunchError::Session)?;
    let info = info(options);
    let name = options.program.name.to_string_lossy();
    let start_error = |error| LaunchError::Start { program: options.program.name.clone(), error };
    // Before there is a file: an older recording of that name stays if nothing can be sampled.
    let (mut backend, line) = Backend::choose(options, &session)?;
    let writer = match GlassWriter::create(&options.output, &info) {
        Ok(writer) => writer,
        Err(error) if is_full_disk(&error) => {
            drop(backend);
            observer.note(&format!("{error}; nothing is recorded, the program runs without"));
            let mut child =
                start::start(options, &session, None, signals.mask_before()).map_err(start_error)?;
            return Ok(wait(&mut child, &signals));
        }
        Err(error) => return Err(error.into()),
    };
    if backend.needs_proc() && !stackglass_procfs::is_mounted() {
        remove_empty(&options.output);
        return Err(LaunchError::NoProc);
    }
    let unpacked = match options.allocations {
        Some(_) if backend.library().is_none() => Some((options.library)().map_err(LaunchError::Library)?),
        _ => None,
    };
    let delay_start = options.delay_start.unwrap_or_default();
    let state = if delay_start.is_zero() { SessionState::Sampling } else { SessionState::Waiting };
    fill_page(&session, options, state);

    let library = || unpacked.as_ref().map(Library::path).or(backend.library());
    let obstacle =
        options.program.obstacle().filter(|obstacle| library().is_some() || obstacle.is_the_kernels());
    let wanted = options.allocations.filter(|_| obstacle.is_none());
    let takeover = wanted.and_then(|_| Takeover::prepare(&options.program.executable(), session.folder()));
    let refused = takeover.as_ref().filter(|takeover| takeover.obstacle().is_some());
    let unseen = refused.map(|takeover| own_allocator::remark(&options.program, takeover));
    let advice = obstacle.map(|obstacle| match unpacked {
        Some(_) => format!("{name} {}", obstacle.advice_on_allocations()),
        None => format!("{name} {}", obstacle.advice()),
    });
    let remarks: Vec<String> = advice.into_iter().chain(line).chain(unseen).collect();
    remarks.iter().for_each(|remark| observer.note(remark));
    let forbids_preload = obstacle.is_some_and(|obstacle| obstacle.forbids_preload());
    let library = library().filter(|_| !forbids_preload);
    let page = session.page();
    page.sampled_from_outside.store(backend.library().is_none().into(), Relaxed);
    if let Some(settings) = options.allocations {
        settings.store(page);
        AllocationSettings::turn(page, delay_start.is_zero());
    }
    if let Some(heap) = &options.heap_at {
        page.heap_at_exit.store(HeapSnapshots::wait_at_start(heap.at), Relaxed);
    }
    backend.begin();
    let child = start::start(options, &session, library, signals.mask_before()).map_err(|error| {
        remove_empty(&options.output);
        start_error(error)
    })?;

    backend.started(child.pid(), &options.program.path);
    if backend.library().is_none() {
        // Without this file, other commands do not find the recording by the id of the program.
        let _ = clearing::name_attached(session.folder(), std::iter::once(child.pid()), true);
    }
    let mut recorder = Recorder::new(info);
    if options.walltime && backend.samples_threads() {
        recorder.count_threads_as_tasks();
    }
    remarks.into_iter().for_each(|remark| recorder.remark(remark));
    let file = RecordingFile::new(&options.output, writer);
    let limits = Limits { delay_start, duration: options.duration };
    let mut recording = RecordingLoop::new(session, signals, recorder, file, limits);
    let peeks = StreamPeeks::new(options.peek_defaults());
    let allocations = options.allocations.map(|_| {
        let mut drain = AllocationDrain::new(recording.session.folder()).by_time();
        drain.skip_executable(&options.program);
        drain
    });
    let snapshots = options
        .heap_at
        .clone()
        .map(|heap| HeapSnapshots::new(heap, child.pid(), recording.session.folder(), &options.output));
    let time = options.time;
    let takeover = takeover.filter(|takeover| takeover.obstacle().is_none());
    let cpu_times = CpuTimes::new(child.pid());
    let mut program = RecordedProgram {
        backend,
        cpu_times,
        stolen_before: stolen_time::so_far(),
        allocations,
        snapshots,
        takeover,
        time,
        child,
        peeks,
        interrupts: 0,
        end_requested: None,
        peek_refused: false,
    };
    recording.run(&mut program, observer);
    Ok(program.finish(recording, options, observer))
}

/// The program that is recorded.
struct RecordedProgram {
    backend: Backend,
    /// To name processes without samples.
    cpu_times: CpuTimes,
    /// What the host had taken from the machine before.
    stolen_before: Nanos,
    allocations: Option<AllocationDrain>,
    /// Heap snapshots during the recording.
    snapshots: Option<HeapSnapshots>,
    /// The plan for the program's own allocator.
    takeover: Option<Takeover>,
    /// Samples of time are taken.
    time: bool,
    child: Child,
    peeks: StreamPeeks,
    /// Number of Ctrl-C and Ctrl-\ so far.
    interrupts: u32,
    /// When the program was first requested to end.
    end_requested: Option<Instant>,
    /// SIGUSR1 has arrived, which the program does not handle.
    peek_refused: bool,
}

impl Source for RecordedProgram {
    fn descriptors(&self) -> Vec<RawFd> {
        self.backend.descriptors()
    }

    fn pause(&mut self) -> Duration {
        self.backend.pause()
    }

    fn read(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let images = self.backend.peekable();
        self.backend.read(recorder);
        self.backend.notes().iter().for_each(|line| observer.note(line));
        self.cpu_times.update();
        self.peeks.update(&images, recorder, observer);
        if let Some(allocations) = &mut self.allocations {
            allocations.update();
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.update(observer);
        }
        if std::mem::take(&mut self.peek_refused) {
            let pid = self.child.pid();
            observer.note(&format!(
                "SIGUSR1 was not passed on, since it would end the program, which does not handle it: \
                 `stackglass peek {pid}` shows what it does"
            ));
        }
    }

    fn settle(&mut self, recorder: &mut Recorder) {
        self.backend.settle(recorder);
        if let Some(allocations) = &mut self.allocations {
            allocations.settle(recorder);
        }
    }

    fn settle_all(&mut self, recorder: &mut Recorder) {
        self.backend.settle_all(recorder);
    }

    fn set_sampling(&mut self, on: bool, recorder: &mut Recorder) {
        self.backend.set_sampling(on && self.time, recorder);
    }

    fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.backend.forget_samples(recorder);
        self.peeks.forget_samples();
    }

    fn forget_allocations(&mut self, before: u64, recorder: &mut Recorder) {
        if let Some(allocations) = &mut self.allocations {
            allocations.forget(before);
        }
        let allocations = &mut recorder.recording_mut().allocations;
        allocations.slices.forget();
        let slices = std::mem::take(&mut allocations.slices);
        *allocations = Allocations { slices, ..Allocations::default() };
    }

    fn processes(&self) -> usize {
        self.backend.processes()
    }

    fn sampler_cpu(&self) -> u64 {
        self.backend.sampler_cpu()
    }

    fn has_ended(&mut self, _: &mut Recorder, _: &mut dyn Observer) -> bool {
        let is_late = self.end_requested.is_some_and(|at| at.elapsed() >= GRACE);
        self.child.ended().is_some() || self.interrupts >= 2 || is_late
    }

    fn suspend(&mut self, signals: &Signals, recorder: &mut Recorder) {
        // The terminal has sent the signal to the program as well: it may stop together with this process.
        // A task snapshot would hold the program up as long.
        let is_on = self.backend.pause_task_snapshots(recorder);
        let stopped = Instant::now();
        signals.stop_here();
        if is_on {
            self.backend.set_sampling(true, recorder);
        }
        let stopped = stopped.elapsed().as_secs_f64();
        recorder.remark(format!("stopped for {stopped:.1} s (Ctrl-Z): no ticks in that time"));
    }

    fn handle(&mut self, signal: Signal) -> bool {
        match (signal.number, signal.from_kernel) {
            // The end of a child and the beat after SIGCONT are checked in every round of the loop.
            (libc::SIGCHLD | libc::SIGCONT | libc::SIGXFSZ, _) => {}
            (number, false) if self.snapshots.as_ref().and_then(HeapSnapshots::signal) == Some(number) => {
                self.snapshots.iter_mut().for_each(HeapSnapshots::begin_at_signal);
            }
            // A key: the terminal has sent the signal to the program as well.
            (libc::SIGINT | libc::SIGQUIT, true) => self.interrupts += 1,
            (libc::SIGHUP, true) => {
                self.child.hang_up();
                self.end_requested.get_or_insert_with(Instant::now);
            }
            // Sent by the program itself to its process group, which includes this process.
            _ if self.child.has_started(signal.sender) => {}
            (libc::SIGUSR1, _) => match expects(self.child.pid(), libc::SIGUSR1) {
                false => self.peek_refused = true,
                true => self.child.send(libc::SIGUSR1),
            },
            (number, _) => {
                self.child.send(number);
                self.end_requested.get_or_insert_with(Instant::now);
            }
        }
        false
    }
}

/// Whether a program handles, ignores or blocks a signal. One that has ended counts as one that does.
///
/// The C library and shells block all signals for the moment of a fork. So a thread that blocks the signal must sleep so, or run
/// for longer than that. If it does neither, it may not block the signal.
fn expects(pid: u32, signal: i32) -> bool {
    const CHECKS: u32 = 300;
    const PAUSE: Duration = Duration::from_millis(1);
    /// Longer than a fork, ns.
    const RUN: u64 = 10_000_000;
    let mut files = threads::Files::new(pid, pid);
    let Some(first) = files.stat() else { return true };
    for _ in 0..CHECKS {
        let Some(before) = files.stat() else { return true };
        let Some(status) = Status::read(pid) else { return true };
        let has_slept = status.state == b'S' && files.stat() == Some(before);
        let is_blocked = status.expects(signal);
        let is_lasting = has_slept || before.ran.saturating_sub(first.ran) > RUN;
        if !is_blocked || is_lasting || (Status { blocked: 0, ..status }).expects(signal) {
            return is_blocked;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

impl RecordedProgram {
    /// Stops all samplers, reads their last events, symbolizes and saves the recording, and waits for the program.
    fn finish(mut self, mut recording: RecordingLoop, options: &Options, observer: &mut dyn Observer) -> End {
        let is_early = self.child.ended().is_none();
        if !is_early {
            recording.signals.finish();
        }
        let kept = self.snapshots.take().map(|snapshots| snapshots.finish(observer));
        if let Some(remark) = kept.as_ref().and_then(|kept| kept.remark()) {
            recording.recorder.remark(remark);
        }
        recording.session.set_state(SessionState::Stopped);
        self.read_last_events(&mut recording.recorder, observer);
        let blind_spot = self.backend.blind_spot();
        let sampler_cpu = self.backend.close(&mut recording.recorder);
        if let Some(allocations) = self.allocations.take() {
            AllocationSettings::turn(recording.session.page(), false);
            if let Some(line) = allocations.close(&mut recording.recorder) {
                observer.note(&line);
                recording.recorder.remark(line);
            }
        }
        if let Some(takeover) = self.takeover.take().filter(|takeover| !takeover.is_done()) {
            recording.recorder.remark(own_allocator::remark(&options.program, &takeover));
        }
        let (has_begun, was_cleared) = (recording.has_begun(), recording.was_cleared());
        let RecordingLoop { session, signals, mut recorder, mut file, .. } = recording;
        // Guests keep the page mapped. New images find no session and run without sampling.
        drop(session);

        let ended = self.child.ended();
        if let Some(delay) = options.delay_start.filter(|delay| !has_begun && !delay.is_zero()) {
            recorder.remark(format!("it ended before the sampling began (--delay-start {delay:?})"));
        }
        let mut recording = recorder.into_recording();
        let end = ended.map_or(End::Running, |(end, _)| end);
        let mut kernel_cpu = ended.map(|(_, cpu)| cpu);
        let mut reasons = unaccounted_cpu::reasons(options, is_early, was_cleared);
        // The kernel counts samplers inside the program as well.
        let of_program = |kernel: Nanos| Nanos(kernel.0.saturating_sub(sampler_cpu.0));
        // What has gone through a pipe stays as it is.
        if let Some(kernel) = kernel_cpu.filter(|_| file.can_be_rewritten()) {
            let stolen = Nanos(stolen_time::so_far().0.saturating_sub(self.stolen_before.0));
            let is_whole = reasons.is_empty();
            let shorter = is_whole && stolen_time::remove(&mut recording, kernel, stolen);
            if stolen_time::bound(&mut recording, of_program(kernel)) || shorter {
                file.rewrite(&recording, observer);
            }
        }
        // What options leave out is no surprise.
        if let Some(kernel) =
            kernel_cpu.filter(|_| reasons.is_empty() && options.time && !recording.info.full)
        {
            recording.info.remarks.extend(self.cpu_times.remark(kernel, sampler_cpu, &recording));
        }
        reasons.extend(blind_spot);
        if let Some(kernel) = kernel_cpu.take_if(|_| !reasons.is_empty()) {
            let remark = unaccounted_cpu::remark(&reasons, kernel, sampler_cpu, &recording);
            recording.info.remarks.extend(remark);
        }
        set_end(&mut recording, Some(end), sampler_cpu.0);
        recording.info.kernel_cpu = kernel_cpu.map(of_program);
        kept.iter().for_each(|kept| kept.set_reached(&mut recording));
        file.finish(recording, observer);
        if let Some(kept) = kept {
            kept.add_to_recording(observer);
        }
        if self.child.ended().is_none() {
            let name = options.program.name.to_string_lossy();
            let pid = self.child.pid();
            let line = format!("{name} (pid {pid}) is still running, and waited for");
            if self.interrupts != 0 || self.end_requested.is_some() {
                observer.note(&format!("{line}; `kill -KILL {pid}` ends it"));
            } else {
                observer.waiting(&line);
            }
        }
        wait(&mut self.child, &signals)
    }

    fn read_last_events(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let until = Instant::now() + LAST_EVENTS;
        self.backend.read(recorder);
        while !self.backend.is_quiet() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            self.backend.read(recorder);
        }
        self.backend.read(recorder);
        self.peeks.finish(recorder, observer);
    }
}

/// Whether an error means that the disk is full, and not that the name of the file is wrong.
fn is_full_disk(error: &WriteError) -> bool {
    let (path, source) = match error {
        WriteError::Create { path, source } | WriteError::Write { path, source, .. } => (path, source),
        _ => return false,
    };
    // A device that is always full, such as /dev/full, is a wrong name.
    let is_device = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) && !is_device
}

/// Waits for a program that is no longer recorded.
fn wait(child: &mut Child, signals: &Signals) -> End {
    loop {
        if let Some((end, _)) = child.ended() {
            return end;
        }
        if let Some(signal) = signals.next(Duration::from_secs(60)) {
            pass_on(signal, child, signals);
        }
    }
}

/// Handles a signal to this process while `child` is not recorded (yet, or any more).
pub fn pass_on(signal: Signal, child: &Child, signals: &Signals) {
    match (signal.number, signal.from_kernel) {
        (libc::SIGCHLD | libc::SIGCONT | libc::SIGXFSZ | libc::SIGUSR2, _) => {}
        (libc::SIGTSTP, _) => signals.stop_here(),
        // A key: the terminal has sent the signal to the program as well.
        (libc::SIGINT | libc::SIGQUIT, true) => {}
        (libc::SIGHUP, true) => child.hang_up(),
        // Sent by the program itself to its process group, which includes this process.
        _ if child.has_started(signal.sender) => {}
        (number, _) => child.send(number),
    }
}

/// Fills in and publishes the page of the session.
pub(super) fn fill_page(session: &Session, options: &Options, state: SessionState) {
    let page = session.page();
    page.delay_ns.store(options.delay.as_nanos() as u64, Relaxed);
    page.stream_bytes.store(STREAM_BYTES as u64, Relaxed);
    page.launcher.store(std::process::id(), Relaxed);
    page.follow_children.store(options.follow_children.into(), Relaxed);
    page.walltime.store(options.walltime.into(), Relaxed);
    let status = std::fs::read("/proc/self/status").unwrap_or_default();
    page.confinement.store(stackglass_wire::confinement(&status), Relaxed);
    session.set_state(state);
    page.publish();
}

/// Facts about the recording that are known before it begins.
fn info(options: &Options) -> RecordingInfo {
    let program = options.program.name.to_string_lossy().into_owned();
    let arguments = options.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let command = std::iter::once(program).chain(arguments).collect();
    RecordingInfo {
        delay: Nanos(options.delay.as_nanos() as u64),
        capacity: options.capacity,
        ..beginning_now(command, &options.writer)
    }
}

/// Nothing was recorded: no file is left behind. A device stays.
fn remove_empty(output: &Path) {
    if output.is_file() {
        let _ = std::fs::remove_file(output);
    }
}
