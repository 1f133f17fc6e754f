//! Requests that a launcher forgets all samples so far, as `stackglass clear` does, or the allocations, as the crate's
//! `clear_malloc_data` does.
//!
//! A request is an empty file in the session folder, and its removal is the answer. No signal is needed, and a
//! launcher of another version simply does not answer.

use super::folder;
use stackglass_procfs::process::descends_from;
use stackglass_wire::CLEAR_ALLOCATIONS_FILE;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the request file in the session folder.
const REQUEST: &str = "clear";
/// Name of the file with the ids of processes that are sampled from outside, one a line.
const ATTACHED: &str = "attached";
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cleared {
    /// The samples are forgotten.
    Done,
    /// There was no answer: nothing is recorded (`stackglass run`), or the launcher is stopped.
    NotAnswered,
}

/// The folder of the session that records process `pid`, or whose launcher is `pid`.
pub fn session_of(pid: u32) -> Option<PathBuf> {
    let sessions = folder::running();
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    sessions.into_iter().find_map(|(folder, launcher)| {
        use std::os::unix::ffi::OsStrExt;
        // A process that is sampled from inside has mapped its stream, a file of this folder.
        let name = folder.join("").into_os_string();
        let sampled = maps.windows(name.len()).any(|part| part == name.as_bytes());
        let named = fs::read_to_string(folder.join(ATTACHED)).unwrap_or_default();
        let attached = named.lines().any(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().and_then(|id| id.parse().ok()).is_some_and(|id: u32| match words.next() {
                Some(_) => descends_from(pid, id),
                None => pid == id,
            })
        });
        (launcher == pid || sampled || attached).then_some(folder)
    })
}

/// Requests that the launcher of a session forgets its samples, and waits for the answer.
///
/// # Errors
/// If the request file cannot be created.
pub fn ask(folder: &Path) -> io::Result<Cleared> {
    let request = folder.join(REQUEST);
    OpenOptions::new().write(true).create(true).truncate(true).open(&request)?;
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if !request.exists() {
            return Ok(Cleared::Done);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = fs::remove_file(request);
    Ok(Cleared::NotAnswered)
}

/// What is to be forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Samples and allocations.
    Everything,
    /// Allocations.
    Allocations,
}

impl Request {
    const fn file(self) -> &'static str {
        match self {
            Request::Everything => REQUEST,
            Request::Allocations => CLEAR_ALLOCATIONS_FILE,
        }
    }

    /// Whether there is such a request. It stays until it is [answered](Request::answer).
    pub(crate) fn is_asked(self, folder: &Path) -> bool {
        folder.join(self.file()).exists()
    }

    /// Answers the request: it is done.
    pub(crate) fn answer(self, folder: &Path) {
        // The client may have withdrawn the request.
        let _ = fs::remove_file(folder.join(self.file()));
    }
}

/// Records in the folder which processes are sampled from outside, and whether their descendants are.
pub(crate) fn name_attached(
    folder: &Path,
    pids: impl Iterator<Item = u32>,
    with_descendants: bool,
) -> io::Result<()> {
    let rest = if with_descendants { " and descendants" } else { "" };
    let lines: String = pids.map(|pid| format!("{pid}{rest}\n")).collect();
    fs::write(folder.join(ATTACHED), lines)
}
