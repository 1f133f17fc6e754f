//! Everything that the sampler asks of the running system, besides the kernel's records.
//!
//! Clocks, `/proc`, the memory of processes and the files they run from are read through [`System`] only. In the command it is a value
//! without size, and each method is a direct call. In tests it can write all answers to a trace, or answer from one, so that what real
//! programs did is replayed without a kernel ([`replay`](super::replay)).

#[cfg(test)]
use super::replay::{Answer, TracedFile, TracedSystem};
use stackglass_attach::frozen::is_own_copy;
use stackglass_proc_text::{SchedStat, ThreadState};
use stackglass_procfs::{Status, clock, process, threads};
use stackglass_unwind::memory::read_process;
use stackglass_wire::ThreadName;
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;
#[cfg(test)]
use std::rc::Rc;
use std::sync::Arc;

/// The running system; in tests, perhaps what a trace knows of it.
#[derive(Clone, Default)]
pub(super) struct System {
    #[cfg(test)]
    traced: Option<Rc<TracedSystem>>,
}

/// A file that was opened; in tests, perhaps what a trace knows of it.
#[derive(Clone, Default)]
pub(super) struct OpenedFile {
    #[cfg(test)]
    traced: Option<TracedFile>,
}

#[cfg(not(test))]
impl System {
    /// Answers a question, which has a name and is about something.
    #[inline(always)]
    fn ask<T>(&self, _name: &'static str, _about: impl Debug, live: impl FnOnce() -> T) -> T {
        live()
    }

    /// A file that is about to be opened.
    #[inline(always)]
    pub(super) fn opened_file(&self) -> OpenedFile {
        OpenedFile {}
    }
}

#[cfg(test)]
impl System {
    /// The system with answers that are written, or come from a trace.
    pub(super) fn with(traced: Rc<TracedSystem>) -> System {
        System { traced: Some(traced) }
    }

    /// How its answers are written, or where they come from.
    pub(super) fn traced(&self) -> Option<&Rc<TracedSystem>> {
        self.traced.as_ref()
    }

    /// Writes something else to the trace, if one is written.
    pub(super) fn note(&self, write: impl FnOnce(&TracedSystem)) {
        if let Some(traced) = &self.traced {
            write(traced);
        }
    }

    fn ask<T: Answer>(&self, name: &'static str, about: impl Debug, live: impl FnOnce() -> T) -> T {
        match &self.traced {
            Some(traced) => traced.ask(name, &about, live),
            None => live(),
        }
    }

    /// A file that is about to be opened.
    pub(super) fn opened_file(&self) -> OpenedFile {
        OpenedFile { traced: self.traced.as_ref().map(TracedFile::new) }
    }
}

impl System {
    /// CLOCK_MONOTONIC, ns.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.ask("now", (), clock::monotonic)
    }

    /// Id of the recording process.
    pub(super) fn own_id(&self) -> u32 {
        self.ask("own id", (), std::process::id)
    }

    /// The kernel's account of a thread; `None` if it has ended.
    #[inline]
    pub(super) fn account(&self, tid: u32, files: &mut threads::Files) -> Option<SchedStat> {
        self.ask("account", tid, || files.stat())
    }

    /// Whether a thread runs or sleeps, and where.
    #[inline]
    pub(super) fn state(&self, tid: u32, files: &mut threads::Files) -> ThreadState {
        self.ask("state", tid, || files.state())
    }

    /// The name of a thread.
    pub(super) fn thread_name(&self, tid: u32, files: &threads::Files) -> Option<ThreadName> {
        self.ask("name", tid, || files.name())
    }

    /// Ids of the threads of a process.
    pub(super) fn threads(&self, pid: u32) -> Vec<u32> {
        self.ask("threads", pid, || threads::list(pid))
    }

    /// Ids of the children of a process.
    pub(super) fn children(&self, pid: u32) -> Vec<u32> {
        self.ask("children", pid, || process::children(pid))
    }

    /// Id of the parent of a process, 0 if it is not known.
    pub(super) fn parent(&self, pid: u32) -> u32 {
        self.ask("parent", pid, || Status::read(pid).map_or(0, |status| status.parent))
    }

    /// Path of the executable of a process; empty if it cannot be read.
    pub(super) fn executable(&self, pid: u32) -> PathBuf {
        self.ask("executable", pid, || process::executable(pid))
    }

    /// The arguments of a process.
    pub(super) fn arguments(&self, pid: u32) -> Vec<String> {
        self.ask("arguments", pid, || process::arguments(pid))
    }

    /// The path by which an executable was started, if that is a link to it.
    pub(super) fn started_as(&self, executable: &str, name: &str) -> Option<Arc<str>> {
        self.ask("started as", (executable, name), || process::started_as(executable, name))
    }

    /// Whether this command has created a process to read its memory.
    pub(super) fn is_own_copy(&self, pid: u32, start: u64) -> bool {
        self.ask("own copy", pid, || is_own_copy(pid, start))
    }

    /// The text of `/proc/PID/maps`.
    pub(super) fn maps(&self, pid: u32) -> Option<Vec<u8>> {
        self.ask("maps", pid, || std::fs::read(format!("/proc/{pid}/maps")).ok())
    }

    /// Copies memory of a process, and returns how many bytes.
    #[cfg(not(test))]
    #[inline]
    pub(super) fn read_memory(&self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        read_process(pid as i32, address, into)
    }

    #[cfg(test)]
    pub(super) fn read_memory(&self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        let mut live = vec![0; into.len()];
        let bytes: Vec<u8> = self.ask("memory", (pid, address, into.len()), || {
            let read = read_process(pid as i32, address, &mut live);
            live[..read].to_vec()
        });
        into[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }
}

#[cfg(not(test))]
impl OpenedFile {
    /// Copies bytes of the file.
    #[inline(always)]
    pub(super) fn read(&self, offset: u64, into: &mut [u8], live: impl Fn(u64, &mut [u8]) -> usize) -> usize {
        live(offset, into)
    }

    /// Where its section of unwind rules lies.
    #[inline(always)]
    pub(super) fn eh_frame(&self, live: impl FnOnce() -> Option<Range<u64>>) -> Option<Range<u64>> {
        live()
    }
}

#[cfg(test)]
impl OpenedFile {
    /// A file of a trace.
    pub(super) fn from_traced(traced: TracedFile) -> OpenedFile {
        OpenedFile { traced: Some(traced) }
    }

    /// The file in the trace.
    pub(super) fn traced(&self) -> Option<&TracedFile> {
        self.traced.as_ref()
    }

    /// Copies bytes of the file.
    pub(super) fn read(&self, offset: u64, into: &mut [u8], live: impl Fn(u64, &mut [u8]) -> usize) -> usize {
        match &self.traced {
            Some(traced) => traced.read(offset, into, live),
            None => live(offset, into),
        }
    }

    /// Where its section of unwind rules lies.
    pub(super) fn eh_frame(&self, live: impl FnOnce() -> Option<Range<u64>>) -> Option<Range<u64>> {
        match &self.traced {
            Some(traced) => traced.eh_frame(live),
            None => live(),
        }
    }
}
