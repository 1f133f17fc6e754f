//! One program from its start to its end: drain, write, pass signals on, finish.
//!
//! The recording ends when the program ends, when `--duration` is over, on the second Ctrl-C or
//! when we are told to go; the program itself is always waited for.

use super::backend::Backend;
use super::start::{self, Child};
use super::stream_peeks::StreamPeeks;
use super::{LaunchError, Options, unaccounted_cpu};
use crate::Recorder;
use crate::recording::Observer;
use crate::recording::machine::machine;
use crate::recording::recording_file::{LastTold, RecordingFile};
use crate::session::Session;
use crate::session::clearing;
use crate::session::signals::{Signal, Signals};
use stackglass_files::{GlassWriter, WriteError};
use stackglass_procfs::clock::{monotonic, own_cpu, realtime};
use stackglass_profile::{About, End, Nanos, Recording};
use stackglass_wire::{STREAM_BYTES, SessionState};
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Time between two appends to the file, two looks for processes that are gone, two progress calls.
const WRITE_EVERY: Duration = Duration::from_millis(250);
/// Time between two looks for a request to forget all samples.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Patience with a program that was told to end before the recording is finished without it.
const GRACE: Duration = Duration::from_secs(2);
/// Patience with samplers that were told to stop.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Starts the program, records it, and waits for it.
///
/// # Errors
/// Only while nothing has been started; afterwards what goes wrong is told to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<End, LaunchError> {
    let signals = Signals::block().map_err(LaunchError::Signals)?;
    let session = Session::create().map_err(LaunchError::Session)?;
    let about = about(options);
    let writer = match GlassWriter::create(&options.output, &about) {
        Ok(writer) => writer,
        Err(error) if is_full_disk(&error) => {
            let line = format!("{error}; nothing is recorded, the program runs without");
            observer.note(&line);
            let program = options.program.name.clone();
            let mut child = start::start(options, &session, None, signals.mask_before())
                .map_err(|error| LaunchError::Start { program, error })?;
            return Ok(wait(&mut child, &signals));
        }
        Err(error) => return Err(error.into()),
    };
    let (mut backend, line) = Backend::choose(options, &session).map_err(LaunchError::Library)?;
    let wait = options.delay_start.is_some_and(|delay| !delay.is_zero());
    give_orders(&session, options, if wait { SessionState::Waiting } else { SessionState::Sampling });

    let obstacle = options
        .program
        .obstacle()
        .filter(|obstacle| backend.library().is_some() || obstacle.is_the_kernels());
    if let Some(obstacle) = obstacle {
        let line = format!("{} {}", options.program.name.to_string_lossy(), obstacle.advice());
        observer.note(&line);
    }
    if let Some(line) = &line {
        observer.note(line);
    }
    let harmless = !obstacle.is_some_and(|obstacle| obstacle.forbids_preload());
    let library = backend.library().filter(|_| harmless);
    let child = start::start(options, &session, library, signals.mask_before()).map_err(|error| {
        // Nothing was recorded: nothing stays.
        if options.output.is_file() {
            let _ = std::fs::remove_file(&options.output);
        }
        LaunchError::Start { program: options.program.name.clone(), error }
    })?;

    backend.started(child.pid(), &options.program.path);
    if backend.library().is_none() {
        // Without it nobody finds the recording by the program's id; it is made all the same.
        let _ = clearing::name_started(session.folder(), child.pid());
    }
    let mut following = Following {
        options,
        backend,
        session,
        signals,
        child,
        recorder: Recorder::new(about),
        file: RecordingFile::new(&options.output, writer),
        began: Instant::now(),
        sampling_since: None,
        interrupts: 0,
        told_to_end: None,
        cleared: false,
        stopped: false,
        peeks: StreamPeeks::new(options.peek, options.delay),
        last: LastTold::default(),
    };
    if let Some(obstacle) = obstacle {
        let name = options.program.name.to_string_lossy();
        following.recorder.remark(format!("{name} {}", obstacle.advice()));
    }
    if let Some(line) = line {
        following.recorder.remark(line);
    }
    following.until_finished(observer);
    Ok(following.finish(observer))
}

struct Following<'a> {
    options: &'a Options,
    backend: Backend,
    session: Session,
    signals: Signals,
    child: Child,
    recorder: Recorder,
    file: RecordingFile,
    began: Instant,
    sampling_since: Option<Instant>,
    /// Ctrl-C and Ctrl-\ so far.
    interrupts: u32,
    told_to_end: Option<Instant>,
    /// What was sampled before was forgotten (`stackglass clear`).
    cleared: bool,
    /// Nothing is sampled any more, since the recording is full.
    stopped: bool,
    peeks: StreamPeeks,
    last: LastTold,
}

impl Following<'_> {
    /// Records until the program ends or the recording shall end without it.
    fn until_finished(&mut self, observer: &mut dyn Observer) {
        let descriptors = self.backend.descriptors();
        let mut next_write = self.began + WRITE_EVERY;
        let mut next_look = self.began;
        while self.child.ended().is_none() && !self.shall_finish() {
            self.begin_when_due();
            self.session.beat();
            let pause = self.backend.pause();
            if let Some(signal) = self.signals.next_or(&descriptors, self.until_next_deadline(pause)) {
                self.take(signal, observer);
            }
            let images = self.backend.peekable();
            self.backend.read(&mut self.recorder);
            self.peeks.look(&images, &mut self.recorder, observer);
            if Instant::now() >= next_look {
                next_look = Instant::now() + LOOK_EVERY;
                if clearing::is_asked(self.session.folder()) {
                    self.clear(observer);
                }
            }
            if self.recorder.is_full() && !std::mem::replace(&mut self.stopped, true) {
                self.backend.set_state(SessionState::Stopped, &self.session, &mut self.recorder);
            }
            if Instant::now() >= next_write {
                self.backend.settle(&mut self.recorder);
                self.file.append(&mut self.recorder, observer);
                self.tell(observer);
                next_write = Instant::now() + WRITE_EVERY;
            }
        }
    }

    /// Forgets what was sampled so far, here and in the file.
    fn clear(&mut self, observer: &mut dyn Observer) {
        self.backend.forget_samples(&mut self.recorder);
        self.peeks.forgotten();
        self.file.begin_anew(&mut self.recorder, observer);
        self.last.forget();
        self.cleared = true;
        if self.sampling_since.is_some() && std::mem::take(&mut self.stopped) {
            self.backend.set_state(SessionState::Sampling, &self.session, &mut self.recorder);
        }
        observer.note("all samples so far are forgotten");
        clearing::answer(self.session.folder());
    }

    /// `--delay-start` is over.
    fn begin_when_due(&mut self) {
        let delay = self.options.delay_start.unwrap_or_default();
        if self.sampling_since.is_none() && self.began.elapsed() >= delay {
            if !delay.is_zero() {
                self.backend.set_state(SessionState::Sampling, &self.session, &mut self.recorder);
                self.recorder.about_mut().start = Nanos(monotonic());
                self.recorder.about_mut().started = realtime();
            }
            self.sampling_since = Some(Instant::now());
        }
    }

    /// The recording ends although the program goes on.
    fn shall_finish(&self) -> bool {
        let over = match (self.options.duration, self.sampling_since) {
            (Some(duration), Some(since)) => since.elapsed() >= duration,
            _ => false,
        };
        over || self.interrupts >= 2 || self.told_to_end.is_some_and(|at| at.elapsed() >= GRACE)
    }

    /// How long to wait for a signal: until the next look at the streams or the next deadline.
    fn until_next_deadline(&self, pause: Duration) -> Duration {
        let now = Instant::now();
        let left = |since: Instant, time: Duration| (since + time).saturating_duration_since(now);
        let mut wait = pause;
        if let (Some(delay), None) = (self.options.delay_start, self.sampling_since) {
            wait = wait.min(left(self.began, delay));
        }
        if let (Some(duration), Some(since)) = (self.options.duration, self.sampling_since) {
            wait = wait.min(left(since, duration));
        }
        wait
    }

    fn take(&mut self, signal: Signal, observer: &mut dyn Observer) {
        match (signal.number, signal.from_kernel) {
            // Ends of children are asked for, and a beat follows a SIGCONT, in any case.
            (libc::SIGCHLD | libc::SIGCONT | libc::SIGXFSZ, _) => {}
            // A key: the terminal has told the program as well.
            (libc::SIGINT | libc::SIGQUIT, true) => self.interrupts += 1,
            (libc::SIGHUP, true) => {
                self.child.hang_up();
                self.told_to_end.get_or_insert_with(Instant::now);
            }
            (libc::SIGTSTP, _) => {
                // The program has got the key as well and may stop with us.
                observer.suspended();
                let stopped = Instant::now();
                self.signals.stop_here();
                let stopped = stopped.elapsed().as_secs_f64();
                self.recorder.remark(format!("stopped for {stopped:.1} s (Ctrl-Z): no ticks in that time"));
            }
            (libc::SIGUSR2, _) => self.save_now(observer),
            // Sent to its whole process group, to which we belong: it has it.
            _ if self.child.has_started(signal.sender) => {}
            (libc::SIGUSR1, _) => self.child.send(signal.number),
            (number, _) => {
                self.child.send(number);
                self.told_to_end.get_or_insert_with(Instant::now);
            }
        }
    }

    fn tell(&mut self, observer: &mut dyn Observer) {
        let sampling = self.sampling_since.is_some() && !self.recorder.is_full();
        let (elapsed, totals) = (self.began.elapsed(), self.recorder.totals());
        observer.progress(&self.last.progress(elapsed, totals, self.backend.processes(), sampling));
    }

    /// Writes a complete recording as of now beside the growing one.
    fn save_now(&mut self, observer: &mut dyn Observer) {
        self.backend.read(&mut self.recorder);
        self.backend.settle_all(&mut self.recorder);
        let mut recording = self.recorder.recording().clone();
        close(&mut recording, End::Running, None, self.backend.sampler_cpu());
        self.file.save_beside(recording, observer);
    }

    /// Stops all samplers, reads their last words, names and saves everything, waits for the program.
    fn finish(mut self, observer: &mut dyn Observer) -> End {
        let early = self.child.ended().is_none();
        self.session.set_state(SessionState::Stopped);
        let patience = Instant::now() + LAST_WORDS;
        self.backend.read(&mut self.recorder);
        while !self.backend.is_quiet() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
            self.backend.read(&mut self.recorder);
        }
        self.backend.read(&mut self.recorder);
        self.peeks.finish(&mut self.recorder, observer);
        let unseen = self.backend.leaves_out();
        let sampler_cpu = self.backend.close(&mut self.recorder);
        // The guests keep the page itself; new images find no session and run unprofiled.
        drop(self.session);

        let ended = self.child.ended();
        let delay = self.options.delay_start.unwrap_or_default();
        if self.sampling_since.is_none() && !delay.is_zero() {
            self.recorder.remark(format!("it ended before the sampling began (--delay-start {delay:?})"));
        }
        let mut recording = self.recorder.into_recording();
        let end = ended.map_or(End::Running, |(end, _)| end);
        let mut kernel_cpu = ended.map(|(_, cpu)| cpu);
        let mut left_out = unaccounted_cpu::reasons(self.options, early, self.cleared);
        left_out.extend(unseen);
        if let Some(kernel) = kernel_cpu.take_if(|_| !left_out.is_empty()) {
            let remark = unaccounted_cpu::remark(&left_out, kernel, sampler_cpu, &recording);
            recording.about.remarks.extend(remark);
        }
        close(&mut recording, end, kernel_cpu, sampler_cpu.0);
        self.file.finish(recording, observer);
        if self.child.ended().is_none() {
            let name = self.options.program.name.to_string_lossy();
            let pid = self.child.pid();
            let line = format!("{name} (pid {pid}) is still running, and waited for");
            if self.interrupts != 0 || self.told_to_end.is_some() {
                observer.note(&format!("{line}; `kill -KILL {pid}` ends it"));
            } else {
                observer.waiting(&line);
            }
        }
        wait(&mut self.child, &self.signals)
    }
}

/// True for an error that says nothing against the name of the recording's file.
fn is_full_disk(error: &WriteError) -> bool {
    let (path, source) = match error {
        WriteError::Create { path, source } | WriteError::Write { path, source, .. } => (path, source),
        _ => return false,
    };
    // A device that is always full is a name that cannot work.
    let is_device = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) && !is_device
}

/// Waits for a program whose recording is finished.
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

/// What a signal to us backend to a program that is not recorded, or not any more.
pub fn pass_on(signal: Signal, child: &Child, signals: &Signals) {
    match (signal.number, signal.from_kernel) {
        (libc::SIGCHLD | libc::SIGCONT | libc::SIGXFSZ | libc::SIGUSR2, _) => {}
        (libc::SIGTSTP, _) => signals.stop_here(),
        // A key: the terminal has told the program as well.
        (libc::SIGINT | libc::SIGQUIT, true) => {}
        (libc::SIGHUP, true) => child.hang_up(),
        // Sent to its whole process group, to which we belong: it has it.
        _ if child.has_started(signal.sender) => {}
        (number, _) => child.send(number),
    }
}

/// What is known of the recording as a whole at its end.
fn close(recording: &mut Recording, end: End, kernel_cpu: Option<Nanos>, sampler_cpu: u64) {
    let about = &mut recording.about;
    about.wall = Nanos(monotonic().saturating_sub(about.start.0));
    about.end = Some(end);
    about.kernel_cpu = kernel_cpu;
    about.own_cpu = Nanos(sampler_cpu + own_cpu());
}

/// Writes the session's page, which begins with `state`.
pub(super) fn give_orders(session: &Session, options: &Options, state: SessionState) {
    let page = session.page();
    page.delay_ns.store(options.delay.as_nanos() as u64, Relaxed);
    page.stream_bytes.store(STREAM_BYTES as u64, Relaxed);
    page.launcher.store(std::process::id(), Relaxed);
    page.follow_children.store(options.follow_children.into(), Relaxed);
    page.walltime.store(options.walltime.into(), Relaxed);
    session.set_state(state);
    page.publish();
}

/// What is known of a recording before it begins.
fn about(options: &Options) -> About {
    let program = options.program.name.to_string_lossy().into_owned();
    let arguments = options.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    About {
        command: std::iter::once(program).chain(arguments).collect(),
        started: realtime(),
        start: Nanos(monotonic()),
        delay: Nanos(options.delay.as_nanos() as u64),
        capacity: options.capacity,
        writer: options.writer.clone(),
        machine: machine(),
        ..About::default()
    }
}
