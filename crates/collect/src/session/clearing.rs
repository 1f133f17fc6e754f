//! Forgetting what was sampled so far: `stackglass clear` asks, the launcher does it.
//!
//! The request is an empty file in the session's folder, and its vanishing the answer: no signal is needed, and
//! a launcher of another version simply does not answer. The recording's file begins anew under its name,
//! in one step: whoever reads it sees what was before or what comes after.

use super::folder;
use stackglass_procfs::process::descends_from;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The request, in the session's folder.
const REQUEST: &str = "clear";
/// Says which process is looked at from outside, where that is so: its id.
const ATTACHED: &str = "attached";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a request came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cleared {
    /// The samples are forgotten.
    Done,
    /// Nobody has answered: it is not recorded (`stackglass run`), or its launcher is stopped.
    NotAnswered,
}

/// The folder of the session that records process `pid`, or whose launcher has that id.
pub fn session_of(pid: u32) -> Option<PathBuf> {
    let sessions = folder::running();
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    sessions.into_iter().find_map(|(folder, launcher)| {
        use std::os::unix::ffi::OsStrExt;
        // Whoever is sampled from inside has its stream mapped, a file of the folder.
        let name = folder.join("").into_os_string();
        let sampled = maps.windows(name.len()).any(|part| part == name.as_bytes());
        let named = fs::read_to_string(folder.join(ATTACHED)).unwrap_or_default();
        let mut words = named.split_ascii_whitespace();
        let attached =
            words.next().and_then(|id| id.parse().ok()).is_some_and(|id: u32| match words.next() {
                Some(_) => descends_from(pid, id),
                None => pid == id,
            });
        (launcher == pid || sampled || attached).then_some(folder)
    })
}

/// Asks the launcher of a session to forget, and waits until it has.
///
/// # Errors
/// When the request cannot be made.
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

/// Whether somebody has asked since the last call. The request stays until it is [answered](answer).
pub(crate) fn is_asked(folder: &Path) -> bool {
    folder.join(REQUEST).exists()
}

/// Tells who asked that it is done.
pub(crate) fn answer(folder: &Path) {
    // Whoever asked may have given up, and taken it back.
    let _ = fs::remove_file(folder.join(REQUEST));
}

/// Says that the session is for a process that is looked at from outside.
pub(crate) fn name_attached(folder: &Path, pid: u32) -> io::Result<()> {
    fs::write(folder.join(ATTACHED), pid.to_string())
}

/// The same of a process that was started to be looked at, with all that it starts.
pub(crate) fn name_started(folder: &Path, pid: u32) -> io::Result<()> {
    fs::write(folder.join(ATTACHED), format!("{pid} and descendants"))
}
