//! One `p-PID-START` file of a session folder: checked, mapped, read.

use crate::Recorder;
use crate::recording::StreamDrain;
use crate::session::bus_guard::GuardedMap;
use stackglass_profile::{Nanos, ProcessIndex, Stacks};
use stackglass_wire::stream;
use stackglass_wire::{CONTROL_BYTES, ProcessState};
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Largest stream that is mapped.
const MOST_BYTES: u64 = (64 << 20) + CONTROL_BYTES as u64;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its process has not finished making it.
    #[error("not ready yet")]
    NotReady,
    /// It will never be readable.
    #[error("{0}")]
    Never(&'static str),
    /// The system would not open or map it.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// One image as a peek sees it.
#[derive(Clone, Copy, Debug)]
pub struct PeekableImage {
    /// The kernel's id of its process, as the process itself sees it.
    pub pid: u32,
    /// When it was taken up.
    pub start: Nanos,
    /// Its place in the recording.
    pub index: ProcessIndex,
    /// The kernel's id of its sampler's thread.
    pub sampler: u32,
    /// Peeks asked for so far.
    pub peeks: u32,
}

/// The stream of one process image, being read.
pub struct StreamFile {
    // Borrows from `_map`, which is dropped after it and never handed out.
    drain: StreamDrain,
    last_tick: u64,
    _map: GuardedMap,
}

impl StreamFile {
    /// Opens, checks and maps the file, and takes its process up.
    pub fn open(path: &Path, recorder: &mut Recorder) -> Result<StreamFile, Refusal> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)
            .map_err(refusal)?;
        let len = check(&file)?;
        let map = GuardedMap::new(file.as_fd(), len)?;
        // SAFETY: the mapping is valid for `len` bytes while `map` lives, and everybody touches it
        // through atomics. The references are 'static by name only: `map` is moved into the same
        // value, whose fields are dropped in order, and none of them is ever handed out.
        let (control, _) = unsafe { stream::view(map.base(), len, 1) }.ok_or(Refusal::NotReady)?;
        if control.is_foreign_version() {
            return Err(Refusal::Never("it was made by another version of stackglass"));
        }
        if !control.is_ready() {
            return Err(Refusal::NotReady);
        }
        let words = control.stream_words.load(Relaxed);
        // SAFETY: as above; sizes are checked by `view`.
        let (control, ring) = usize::try_from(words)
            .ok()
            .and_then(|words| unsafe { stream::view(map.base(), len, words) })
            .ok_or(Refusal::Never("its size makes no sense"))?;
        let drain =
            StreamDrain::new(control, ring, recorder).ok_or(Refusal::Never("the recording is full"))?;
        Ok(StreamFile { drain, last_tick: 0, _map: map })
    }

    /// When the image was taken up.
    pub fn start(&self) -> Nanos {
        Nanos(self.drain.control().start_ns.load(Relaxed))
    }

    /// The kernel's id of its process, as the process itself sees it.
    pub fn pid(&self) -> u32 {
        self.drain.control().pid.load(Relaxed)
    }

    /// Forgets which stacks were interned, after [`Recorder::clear_samples`].
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.drain.forget_stacks(before, recorder);
    }

    /// The image as a peek needs it.
    pub fn peekable(&self) -> PeekableImage {
        let control = self.drain.control();
        PeekableImage {
            pid: self.pid(),
            start: self.start(),
            index: self.drain.index(),
            sampler: control.sampler_tid.load(Relaxed),
            peeks: control.peeks.load(Relaxed),
        }
    }

    /// Reads all events that are waiting now. Returns how full the stream was, 0 to 1.
    pub fn drain(&mut self, recorder: &mut Recorder) -> f64 {
        self.drain.drain(recorder)
    }

    /// Whether its sampler will write nothing more.
    pub fn has_stopped(&self) -> bool {
        matches!(self.drain.control().process_state(), ProcessState::Stopped | ProcessState::Unable)
    }

    /// Whether a tick has ended since the last call.
    pub fn has_ticked(&mut self) -> bool {
        let tick = self.drain.control().last_tick_ns.load(Relaxed);
        std::mem::replace(&mut self.last_tick, tick) != tick
    }

    /// CPU time of its sampler, ns.
    pub fn sampler_cpu(&self) -> u64 {
        self.drain.control().sampler_cpu_ns.load(Relaxed)
    }

    /// Copies counters into the recording, and remarks on what went wrong.
    pub fn refresh(&self, recorder: &mut Recorder) {
        self.drain.refresh(recorder);
    }

    /// Marks the image as ended, at its last tick.
    pub fn end(&mut self, recorder: &mut Recorder) {
        self.drain.end(recorder);
    }
}

/// A link, a folder, a device without a driver, or something that we may not read: none of it is a stream.
fn refusal(error: std::io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ELOOP | libc::EISDIR | libc::ENXIO | libc::EACCES) => {
            Refusal::Never("it is not a plain file of ours")
        }
        _ => Refusal::System(error),
    }
}

fn check(file: &File) -> Result<usize, Refusal> {
    let meta = file.metadata()?;
    // SAFETY: geteuid has no arguments and cannot fail.
    let me = unsafe { libc::geteuid() };
    if !meta.is_file() {
        return Err(Refusal::Never("it is not a plain file"));
    }
    // What root starts may go on as anybody.
    if meta.uid() != me && me != 0 {
        return Err(Refusal::Never("it belongs to another user"));
    }
    if meta.nlink() > 1 {
        return Err(Refusal::Never("it is a file of somewhere else"));
    }
    match meta.len() {
        n if n < CONTROL_BYTES as u64 + 8 => Err(Refusal::NotReady),
        n if n > MOST_BYTES => Err(Refusal::Never("its size makes no sense")),
        n => Ok(n as usize),
    }
}
