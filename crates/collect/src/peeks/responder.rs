//! Where the result of a peek goes: to the `stackglass peek PID` that requested it, or to standard error.
//!
//! A peek is requested by a signal. `stackglass peek` writes a request file before it sends the signal. So a
//! responder that has received signals looks for request files; a signal without a file is a request for standard
//! error. Each request gets its own peek, in order, and its response goes to one place from the first line to the
//! last.

use super::request::{COMPLETE, CUT_SHORT, LONGEST, PeekOptions, folder, lock};
use crate::private_folder::is_private;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// A signal without a request file belongs to the last request file if it comes this soon after it.
const LATE_SIGNAL: Duration = Duration::from_millis(50);
/// The signal of a request file that was seen before it comes within this time, also on a busy machine.
const OWN_SIGNAL: Duration = Duration::from_secs(2);

/// The receiver of one peek's result.
#[derive(Clone, Debug, Default)]
pub struct Responder {
    /// The request file; `None`: standard error.
    file: Option<Arc<File>>,
    options: PeekOptions,
}

impl Responder {
    /// The result goes to standard error.
    pub fn stderr() -> Responder {
        Responder::default()
    }

    /// Whether the result goes to standard error.
    pub fn is_stderr(&self) -> bool {
        self.file.is_none()
    }

    /// The options of the request.
    pub fn options(&self) -> &PeekOptions {
        &self.options
    }

    /// Whether the client does not wait any more.
    pub fn is_abandoned(&self) -> bool {
        self.file.as_ref().is_some_and(|file| lock(file, libc::LOCK_SH))
    }

    /// Appends to the response. Returns false for standard error, which the caller writes to.
    pub fn write(&self, text: &[u8]) -> bool {
        let Some(mut file) = self.file.as_deref() else { return false };
        // Nothing can be done about a full disk.
        let _ = file.write_all(text);
        true
    }

    /// Finishes the response; `complete` unless the process ended first.
    pub fn finish(&self, complete: bool) {
        self.write(&[if complete { COMPLETE } else { CUT_SHORT }]);
    }
}

/// The requests to one process.
#[derive(Debug)]
pub struct RequestQueue {
    pid: u32,
    folder: PathBuf,
    last: Option<Instant>,
    /// Request files that were seen before their signal.
    ahead: usize,
}

impl RequestQueue {
    /// The requests to process `pid`.
    pub fn new(pid: u32) -> RequestQueue {
        RequestQueue { pid, folder: folder(), last: None, ahead: 0 }
    }

    /// Responders for this number of new requests, oldest first.
    pub fn receive(&mut self, requests: u32) -> Vec<Responder> {
        if requests == 0 {
            return Vec::new();
        }
        let mut found = self.take();
        let requests = requests as usize;
        let age = self.last.map(|last| last.elapsed());
        if age.is_none_or(|age| age >= OWN_SIGNAL) {
            self.ahead = 0;
        }
        if !found.is_empty() {
            self.last = Some(Instant::now());
        }
        if let Some(without_file) = requests.checked_sub(found.len()).filter(|signals| *signals > 0) {
            let are_late = found.is_empty() && age.is_some_and(|age| age < LATE_SIGNAL);
            if !are_late && without_file > self.ahead {
                found.insert(0, Responder::stderr());
            }
            self.ahead = self.ahead.saturating_sub(without_file);
        } else {
            self.ahead += found.len() - requests;
        }
        found
    }

    /// Removes all request files from the folder.
    fn take(&self) -> Vec<Responder> {
        // Usually there is no such folder: one system call.
        if !is_private(&self.folder) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let asked = format!("{}.", self.pid);
        let mut found: Vec<(SystemTime, Responder)> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&asked))
            .filter_map(|entry| take(&entry.path()))
            .filter(|(_, responder)| !responder.is_abandoned())
            .collect();
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, responder)| responder).collect()
    }
}

/// Accepts one request. Returns when it was written, and its responder.
fn take(path: &Path) -> Option<(SystemTime, Responder)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path);
    let _ = fs::remove_file(path);
    let file = file.ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.mode() & 0o077 == 0)?;
    let mut line = [0; LONGEST];
    let n = (&file).read(&mut line).ok()?;
    let options = PeekOptions::parse(&line[..n]);
    Some((meta.modified().ok()?, Responder { file: Some(Arc::new(file)), options }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peeks::request::{PeekRequest, ResponseEnd};

    fn questions(folder: &Path, pid: u32) -> RequestQueue {
        RequestQueue { pid, folder: folder.to_owned(), last: None, ahead: 0 }
    }

    #[test]
    fn an_answer_comes_in_parts_and_ends() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let options = PeekOptions { columns: Some(60), ..PeekOptions::default() };
        let mut request = PeekRequest::in_folder(&folder, 7, &options).unwrap();
        let [stderr] = &questions(&folder, 8).receive(1)[..] else { panic!("a question to another process") };
        assert!(stderr.is_stderr() && !stderr.write(b"text") && !stderr.is_abandoned());
        let mut all = questions(&folder, 7);
        assert!(all.receive(0).is_empty());
        assert!(!request.is_accepted());
        let [responder] = &all.receive(1)[..] else { panic!("one question") };
        assert!(request.is_accepted());
        assert!(!responder.is_stderr() && *responder.options() == options);
        assert_eq!(request.read_more().unwrap(), b"");
        assert!(responder.write(b"stacks\n"));
        assert_eq!(request.read_more().unwrap(), b"stacks\n");
        assert_eq!(request.end(), None);
        responder.write(b"report\n");
        responder.finish(true);
        responder.write(b"nothing more");
        assert_eq!(request.read_more().unwrap(), b"report\n");
        assert_eq!(request.end(), Some(ResponseEnd::Complete));
        assert!(!responder.is_abandoned());
        drop(request);
        assert!(responder.is_abandoned(), "nobody waits");
    }

    #[test]
    fn each_request_is_taken_once_and_a_signal_alone_is_for_standard_error() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let mut all = questions(&folder, 7);
        assert!(all.receive(1)[0].is_stderr(), "there is no folder yet");
        let _request = PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).unwrap();
        assert!(matches!(&all.receive(1)[..], [one] if !one.is_stderr()));
        assert!(all.receive(1).is_empty(), "its own signal, after the question was seen");
        std::thread::sleep(LATE_SIGNAL);
        assert!(matches!(&all.receive(1)[..], [one] if one.is_stderr()));
        let mut second = PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).unwrap();
        let both = all.receive(2);
        assert!(both.len() == 2 && both[0].is_stderr() && !both[1].is_stderr());
        both[1].finish(false);
        second.read_more().unwrap();
        assert_eq!(second.end(), Some(ResponseEnd::CutShort));
    }

    #[test]
    fn the_signal_of_a_request_that_was_seen_before_may_come_late() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let _requests =
            [(); 2].map(|()| PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).unwrap());
        let mut all = questions(&folder, 7);
        assert_eq!(all.receive(1).len(), 2, "the second signal is on its way");
        std::thread::sleep(2 * LATE_SIGNAL);
        assert!(all.receive(1).is_empty());
        assert!(matches!(&all.receive(1)[..], [one] if one.is_stderr()), "one more signal");
    }

    #[test]
    fn a_process_that_asks_twice_has_two_answers() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let mut requests =
            [(); 2].map(|()| PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).unwrap());
        let responders = questions(&folder, 7).receive(2);
        assert!(responders.len() == 2 && responders.iter().all(|responder| !responder.is_stderr()));
        for (responder, request) in responders.iter().zip(&mut requests) {
            responder.finish(true);
            request.read_more().unwrap();
            assert_eq!(request.end(), Some(ResponseEnd::Complete));
        }
    }

    #[test]
    fn what_nobody_waits_for_is_taken_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        drop(PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).unwrap());
        for name in ["7.1", "8.1"] {
            fs::write(folder.join(name), "stackglass-peek-1 duration=3600000000000\n").unwrap();
        }
        fs::create_dir(folder.join("7.2")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("7.3")).unwrap();
        let mut all = questions(&folder, 7);
        assert!(matches!(&all.receive(1)[..], [one] if one.is_stderr()), "who asked was killed");
        assert!(!folder.join("7.1").exists() && folder.join("8.1").exists());
    }
}
