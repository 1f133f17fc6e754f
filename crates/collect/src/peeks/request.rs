//! A request by `stackglass peek PID` to a process that answers peeks itself.
//!
//! A request is a file in a private folder, named by the two process ids and a number. Its first line holds the options; the
//! response is appended (see `responder`). The responder unlinks the file at once, so no request is answered twice.
//! The client holds a lock on the file while it waits; the kernel releases the lock however the client ends. Both
//! sides belong to the same user, and a folder that others may enter is not used. A process in another mount
//! namespace does not see the file and answers on its standard error.

use crate::private_folder::{is_private, user};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Requests of this process.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Last byte of a complete response, and of one that was cut short. They do not occur in text.
pub(crate) const COMPLETE: u8 = 4;
pub(crate) const CUT_SHORT: u8 = 24;

/// Start of the line of options; identifies the version.
const HEAD: &str = "stackglass-peek-1";
/// Longest line of options that is read.
pub(crate) const LONGEST: usize = 200;

/// Options of a peek. `None`: the default of the responder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeekOptions {
    /// Duration of the profile.
    pub duration: Option<Duration>,
    /// Time between two samples of a thread.
    pub delay: Option<Duration>,
    /// Width in columns.
    pub columns: Option<usize>,
    /// Use colours.
    pub colours: bool,
}

/// Duration and delay of a peek whose options do not set them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeekDefaults {
    /// Duration of the profile.
    pub duration: Duration,
    /// Time between two samples of a thread.
    pub delay: Duration,
}

/// Valid durations, ns: 1 ms to 1 h.
const DURATIONS: std::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;
/// Valid delays, ns: 100 µs to 1 h.
const DELAYS: std::ops::RangeInclusive<u64> = 100_000..=3_600_000_000_000;
const COLUMNS: std::ops::RangeInclusive<u64> = 1..=10_000;

impl PeekOptions {
    fn line(&self) -> String {
        let mut line = HEAD.to_owned();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut add = |key: &str, value: Option<u64>| {
            if let Some(value) = value {
                line += &format!(" {key}={value}");
            }
        };
        // Longer durations become one hour.
        add("duration", self.duration.map(|time| nanos(time).clamp(*DURATIONS.start(), *DURATIONS.end())));
        add("delay", self.delay.map(nanos));
        add("columns", self.columns.map(|columns| columns as u64));
        add("colours", self.colours.then_some(1));
        line + "\n"
    }

    /// Parses a line of options. This runs inside a program and must not fail: unknown or invalid options are
    /// ignored.
    pub(crate) fn parse(text: &[u8]) -> PeekOptions {
        let mut options = PeekOptions::default();
        let line = text.iter().take(LONGEST).position(|b| *b == b'\n').map(|end| &text[..end]);
        let Some(line) = line.and_then(|line| std::str::from_utf8(line).ok()) else { return options };
        let mut words = line.split(' ');
        if words.next() != Some(HEAD) {
            return options;
        }
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let Ok(value) = value.parse::<u64>() else { continue };
            match key {
                "duration" if DURATIONS.contains(&value) => {
                    options.duration = Some(Duration::from_nanos(value))
                }
                "delay" if DELAYS.contains(&value) => options.delay = Some(Duration::from_nanos(value)),
                "columns" if COLUMNS.contains(&value) => options.columns = Some(value as usize),
                "colours" => options.colours = value == 1,
                _ => {}
            }
        }
        options
    }
}

/// How a response ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseEnd {
    /// It is complete.
    Complete,
    /// The process ended first.
    CutShort,
}

/// A request that waits for its response. Dropping it removes the file.
pub struct PeekRequest {
    path: PathBuf,
    file: File,
    ended: Option<ResponseEnd>,
}

impl PeekRequest {
    /// Writes the request file for process `pid`.
    ///
    /// # Errors
    /// If the folder is not private or the file cannot be created.
    pub fn new(pid: u32, options: &PeekOptions) -> io::Result<PeekRequest> {
        PeekRequest::in_folder(&folder(), pid, options)
    }

    pub(crate) fn in_folder(folder: &Path, pid: u32, options: &PeekOptions) -> io::Result<PeekRequest> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !is_private(folder) {
            let line = format!("{} is not a folder of this user alone", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, line));
        }
        // Several clients may ask at the same time, and one of them several times: each request has its own file. The file gets its
        // name when it is complete.
        let own = format!("{}.{}", std::process::id(), REQUESTS.fetch_add(1, Relaxed));
        let (making, path) = (folder.join(format!("new.{pid}.{own}")), folder.join(format!("{pid}.{own}")));
        // Left behind by a killed process with the same id.
        let _ = fs::remove_file(&making);
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&making)?;
        if !lock(&file, libc::LOCK_EX) {
            return Err(io::Error::last_os_error());
        }
        file.write_all(options.line().as_bytes())?;
        fs::rename(&making, &path)?;
        Ok(PeekRequest { path, file, ended: None })
    }

    /// The part of the response since the last call; empty if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_more(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        if self.ended.is_none() {
            self.file.read_to_end(&mut text)?;
        }
        if let Some(end) = text.iter().position(|byte| matches!(*byte, COMPLETE | CUT_SHORT)) {
            self.ended =
                Some(if text[end] == COMPLETE { ResponseEnd::Complete } else { ResponseEnd::CutShort });
            text.truncate(end);
        }
        Ok(text)
    }

    /// Whether a responder has accepted the request.
    pub fn is_accepted(&self) -> bool {
        !self.path.exists()
    }

    /// How the response ended; `None` while it has not.
    pub fn end(&self) -> Option<ResponseEnd> {
        self.ended
    }
}

impl Drop for PeekRequest {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Text for a client that has to wait while another peek goes on for `left`.
pub fn wait_notice(pid: u32, left: Duration) -> String {
    let left = left.as_secs_f64();
    format!(
        "stackglass: process {pid} is being peeked at already;\nstackglass: your peek follows in {left:.1} s\n"
    )
}

/// Folder of this user's requests.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(format!("/tmp/stackglass-peek-{}", user()))
}

/// Tries to lock a request file; `how` as in flock(2). A waiting client holds the lock until it ends.
pub(crate) fn lock(file: &File, how: i32) -> bool {
    // SAFETY: a system call with an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_as_they_were_written() {
        let options = PeekOptions {
            duration: Some(Duration::from_millis(2500)),
            delay: Some(Duration::from_micros(500)),
            columns: Some(77),
            colours: true,
        };
        assert_eq!(PeekOptions::parse(options.line().as_bytes()), options);
        assert_eq!(PeekOptions::parse(PeekOptions::default().line().as_bytes()), PeekOptions::default());
        let day = PeekOptions { duration: Some(Duration::from_secs(86_400)), ..PeekOptions::default() };
        assert_eq!(PeekOptions::parse(day.line().as_bytes()).duration, Some(Duration::from_secs(3600)));
    }

    #[test]
    fn what_is_no_wish_is_not_wished() {
        let long = format!("{HEAD} {} columns=50\n", "x".repeat(LONGEST));
        for text in [
            "",
            "\n",
            "stackglass-peek-2 columns=50\n",
            "stackglass-peek-1 columns=50",
            "stackglass-peek-1 columns=0 duration=0 delay=99999\n",
            "stackglass-peek-1 duration=3600000000001 delay=-1 columns=10001\n",
            "stackglass-peek-1 duration=18446744073709551616 delay= columns=1e3 colours=2\n",
            &long,
        ] {
            assert_eq!(PeekOptions::parse(text.as_bytes()), PeekOptions::default(), "{text:?}");
        }
        assert_eq!(PeekOptions::parse(b"stackglass-peek-1 \xff=1 columns=50\n"), PeekOptions::default());
        let known = PeekOptions { columns: Some(50), ..PeekOptions::default() };
        assert_eq!(PeekOptions::parse(b"stackglass-peek-1 later=1 columns=50 =\n"), known);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        DirBuilder::new().mode(0o755).create(&folder).unwrap();
        assert!(PeekRequest::in_folder(&folder, 7, &PeekOptions::default()).is_err());
        let link = place.path().join("link");
        let private = place.path().join("private");
        DirBuilder::new().mode(0o700).create(&private).unwrap();
        std::os::unix::fs::symlink(&private, &link).unwrap();
        assert!(PeekRequest::in_folder(&link, 7, &PeekOptions::default()).is_err());
        assert!(PeekRequest::in_folder(&private, 7, &PeekOptions::default()).is_ok());
    }
}
