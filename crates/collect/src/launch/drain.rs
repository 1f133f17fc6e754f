//! All streams of a session: found as processes create them, read, and closed when their process has ended.

use super::stream_file::{PeekableImage, Refusal, StreamFile};
use foldhash::HashSet;
use stackglass_procfs::process::is_alive;
use stackglass_profile::{Nanos, Recorder};
use stackglass_wire::PROCESS_FILE_PREFIX;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Largest number of open streams; files of further processes wait.
const MOST: usize = 2048;

/// Largest number of folder entries that are read; a hostile program may create any number.
const MOST_ENTRIES: usize = 1 << 16;

/// Twice the longest step of the clock for file times (a tick at 100 Hz).
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The streams of one session folder.
pub struct Drain {
    folder: PathBuf,
    open: Vec<Open>,
    refused: HashSet<OsString>,
    /// Modification time of the folder when it was last listed; `None`: list it again in any case.
    listed: Option<SystemTime>,
    /// CPU time of samplers whose stream was closed, ns.
    past_sampler_cpu: u64,
}

struct Open {
    stream: StreamFile,
    /// Its path, until the file is removed.
    path: Option<PathBuf>,
}

impl Drain {
    /// No streams yet.
    pub fn new(folder: &Path) -> Drain {
        Drain {
            folder: folder.to_path_buf(),
            open: Vec::new(),
            refused: HashSet::default(),
            listed: None,
            past_sampler_cpu: 0,
        }
    }

    /// Looks for new processes and reads all waiting events. Returns how full the fullest stream was.
    pub fn read(&mut self, recorder: &mut Recorder) -> f64 {
        self.find(recorder);
        self.open.iter_mut().map(|open| open.stream.drain(recorder)).fold(0.0, f64::max)
    }

    /// Number of open streams.
    pub fn processes(&self) -> usize {
        self.open.len()
    }

    /// Forgets all samples; processes, threads and modules stay known.
    pub fn forget_samples(&mut self, recorder: &mut Recorder) {
        let before = recorder.clear_samples();
        self.open.iter_mut().for_each(|open| open.stream.forget_stacks(&before, recorder));
    }

    /// The current images, for peeks.
    pub fn peekable(&self) -> Vec<PeekableImage> {
        self.open.iter().map(|open| open.stream.peekable()).collect()
    }

    /// CPU time of all samplers, ns.
    pub fn sampler_cpu(&self) -> u64 {
        self.past_sampler_cpu + self.open.iter().map(|open| open.stream.sampler_cpu()).sum::<u64>()
    }

    /// Closes the streams of images that have ended, after reading the rest, and copies counters.
    pub fn settle(&mut self, recorder: &mut Recorder) {
        self.close_ended(recorder, false);
    }

    fn close_ended(&mut self, recorder: &mut Recorder, at_the_end: bool) {
        let replaced: Vec<bool> = self.open.iter().map(|open| self.is_replaced(&open.stream)).collect();
        let mut replaced = replaced.into_iter();
        let past = &mut self.past_sampler_cpu;
        self.open.retain_mut(|open| {
            let replaced = replaced.next().unwrap_or(false);
            let stream = &mut open.stream;
            let ticked = stream.has_ticked();
            // The guest has mapped its file: the name is not needed any more.
            if (ticked || stream.has_stopped())
                && let Some(path) = open.path.take()
            {
                let _ = fs::remove_file(path);
            }
            let gone = replaced || ((at_the_end || !ticked) && !is_alive(stream.pid()));
            if gone {
                stream.drain(recorder);
                stream.end(recorder);
                *past += stream.sampler_cpu();
            }
            stream.refresh(recorder);
            if gone && let Some(path) = open.path.take() {
                let _ = fs::remove_file(path);
            }
            !gone
        });
    }

    /// Whether every image has written its last event or has ended.
    pub fn is_quiet(&mut self) -> bool {
        self.open.iter().all(|open| open.stream.has_stopped() || !is_alive(open.stream.pid()))
    }

    /// Whether the same process has a later image: this one ended with an exec.
    fn is_replaced(&self, stream: &StreamFile) -> bool {
        self.open
            .iter()
            .any(|other| other.stream.pid() == stream.pid() && other.stream.start() > stream.start())
    }

    /// Whether the folder has changed since it was listed, as far as its clock can tell.
    fn has_changed(&mut self) -> bool {
        let changed = fs::metadata(&self.folder).and_then(|meta| meta.modified()).ok();
        // Within one step of the clock, a second change has the same time as the first.
        let settled = changed.filter(|at| at.elapsed().is_ok_and(|age| age > CLOCK_STEP));
        settled.is_none() || std::mem::replace(&mut self.listed, settled) != settled
    }

    fn find(&mut self, recorder: &mut Recorder) {
        if !self.has_changed() {
            return;
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut found: Vec<(u64, OsString)> = entries
            .flatten()
            .take(MOST_ENTRIES)
            .map(|entry| entry.file_name())
            .filter(|name| name.as_bytes().starts_with(PROCESS_FILE_PREFIX.as_bytes()))
            .filter(|name| !self.refused.contains(name) && !self.is_open(name))
            .map(|name| (start_of(&name), name))
            .collect();
        found.sort();
        for (_, name) in found {
            if self.open.len() >= MOST {
                recorder.remark(format!("more than {MOST} processes at a time: some were taken up late"));
                self.listed = None;
                break;
            }
            let path = self.folder.join(&name);
            match StreamFile::open(&path, recorder) {
                Ok(stream) => self.open.push(Open { stream, path: Some(path) }),
                Err(Refusal::NotReady) => self.listed = None,
                Err(Refusal::Never(why)) => {
                    // A full recording is reported elsewhere.
                    if !recorder.is_full() {
                        recorder.remark(format!("a process file was not read: {why}"));
                    }
                    if self.refused.len() < MOST {
                        self.refused.insert(name);
                    }
                    let _ = fs::remove_file(path);
                }
                // Out of descriptors or mappings: try again next time.
                Err(Refusal::System(error)) => {
                    recorder.remark(format!("a process file could not be opened at once: {error}"));
                    self.listed = None;
                }
            }
        }
    }

    fn is_open(&self, name: &OsString) -> bool {
        self.open.iter().any(|open| open.path.as_ref().and_then(|path| path.file_name()) == Some(name))
    }

    /// Closes all streams and returns the CPU time of all samplers. Images that go on have no end in the recording.
    pub fn close(mut self, recorder: &mut Recorder) -> Nanos {
        self.close_ended(recorder, true);
        Nanos(self.sampler_cpu())
    }
}

/// START of `p-PID-START`, for sorting; 0 for other names.
fn start_of(name: &OsString) -> u64 {
    name.to_str().and_then(|name| name.rsplit('-').next()?.parse().ok()).unwrap_or(0)
}
