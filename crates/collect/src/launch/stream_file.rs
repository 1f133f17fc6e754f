//! One `p-PID-START` file of a session folder: checked, mapped and read.

use crate::private_folder::user;
use crate::recording::StreamDrain;
use crate::session::bus_guard::GuardedMap;
use stackglass_profile::{Nanos, ProcessIndex, Recorder, Stacks};
use stackglass_wire::stream;
use stackglass_wire::{CONTROL_BYTES, ProcessState};
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Largest stream that is mapped, bytes.
const MOST_BYTES: u64 = (64 << 20) + CONTROL_BYTES as u64;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its process has not finished creating it.
    #[error("not ready yet")]
    NotReady,
    /// It will never be readable.
    #[error("{0}")]
    Never(&'static str),
    /// It cannot be opened or mapped.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// A process image, as far as a peek needs it.
#[derive(Clone, Copy, Debug)]
pub struct PeekableImage {
    /// Id of its process, as the process itself sees it.
    pub pid: u32,
    /// Start of the image.
    pub start: Nanos,
    /// Its index in the recording.
    pub index: ProcessIndex,
    /// Id of its sampler's thread.
    pub sampler: u32,
    /// Number of peeks that were requested so far.
    pub peeks: u32,
}

/// The stream of one process image.
pub struct StreamFile {
    // Borrows from `_map`, which is dropped after it and never handed out.
    drain: StreamDrain,
    last_tick: u64,
    _map: GuardedMap,
}

impl StreamFile {
    /// Opens, checks and maps the file, and adds its process to the recording.
    pub fn open(path: &Path, recorder: &mut Recorder) -> Result<StreamFile, Refusal> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)
            .map_err(refusal)?;
        let len = check(&file)?;
        let map = GuardedMap::new(file.as_fd(), len)?;
        // SAFETY: the mapping is valid for `len` bytes while `map` lives, and is accessed only through atomics. The
        // references are not really 'static: `map` is moved into the same value, whose fields are dropped in order,
        // and the references are never handed out.
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

    /// Start of the image.
    pub fn start(&self) -> Nanos {
        Nanos(self.drain.control().start_ns.load(Relaxed))
    }

    /// Id of its process, as the process itself sees it.
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

/// A link, a folder, a device without a driver, or an unreadable file is not a stream.
fn refusal(error: std::io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ELOOP | libc::EISDIR | libc::ENXIO | libc::EACCES) => {
            Refusal::Never("it is not a plain file of this user")
        }
        _ => Refusal::System(error),
    }
}

fn check(file: &File) -> Result<usize, Refusal> {
    let meta = file.metadata()?;
    let me = user();
    if !meta.is_file() {
        return Err(Refusal::Never("it is not a plain file"));
    }
    // A program that root starts may change its user.
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
