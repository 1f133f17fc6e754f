//! A question by `stackglass peek PID` to a process that answers peeks itself.
//!
//! It is a file named by the process and by whoever asks, in a private folder: one line of options, and behind it
//! the answer as it is appended (`peek_answer`). Whoever answers takes the file away from its folder at once, so that no
//! question is answered twice; it is locked as long as somebody waits for the answer, however he ends. Both sides are
//! the same user; a folder that is not private to him is nobody's. A process in another mount namespace does
//! not see the file, and answers on its standard error.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The last byte of a whole answer, and of one that the end of the process has cut short: no text has them.
pub(crate) const COMPLETE: u8 = 4;
pub(crate) const CUT_SHORT: u8 = 24;

/// Begins the line of options; another version's would begin differently.
const HEAD: &str = "stackglass-peek-1";
/// A longer line is not read.
pub(crate) const LONGEST: usize = 200;

/// What whoever asks wants differently from what the program does by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeekOptions {
    /// How long the profile takes.
    pub duration: Option<Duration>,
    /// Time between two looks at a thread.
    pub delay: Option<Duration>,
    /// Width in columns.
    pub columns: Option<usize>,
    /// Whether colours are shown.
    pub colours: bool,
}

/// What a profile may take: 1 ms to 1 h.
const DURATIONS: std::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;
/// Between two looks: 100 us to 1 h.
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
        // More than an hour is an hour.
        add("duration", self.duration.map(|time| nanos(time).clamp(*DURATIONS.start(), *DURATIONS.end())));
        add("delay", self.delay.map(nanos));
        add("columns", self.columns.map(|columns| columns as u64));
        add("colours", self.colours.then_some(1));
        line + "\n"
    }

    /// Reads a line of options, inside a program that must come to no harm: what is not understood, or out of its range, is
    /// not wished.
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

/// How an answer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseEnd {
    /// It is whole.
    Complete,
    /// The process ended before.
    CutShort,
}

/// A question that waits for its answer. The file goes when this is dropped.
pub struct PeekRequest {
    path: PathBuf,
    file: File,
    ended: Option<ResponseEnd>,
}

impl PeekRequest {
    /// Puts up the file for process `pid`.
    ///
    /// # Errors
    /// When the folder cannot be made private or the file not be made.
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
        // Several may ask at a time, each with a file of his own; it gets its name when it is complete.
        let own = std::process::id();
        let (making, path) = (folder.join(format!("new.{pid}.{own}")), folder.join(format!("{pid}.{own}")));
        // Left by one who was killed and had the same id.
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

    /// What was answered since the last call, empty while nothing was.
    ///
    /// # Errors
    /// When the file cannot be read.
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

    /// Whether somebody has taken it away to answer it.
    pub fn is_accepted(&self) -> bool {
        !self.path.exists()
    }

    /// How the answer ended, once it has.
    pub fn end(&self) -> Option<ResponseEnd> {
        self.ended
    }
}

impl Drop for PeekRequest {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What whoever asks is told while another peek goes on for `left`.
pub fn wait_notice(pid: u32, left: Duration) -> String {
    let left = left.as_secs_f64();
    format!(
        "stackglass: process {pid} is being peeked at already;\nstackglass: your peek follows in {left:.1} s\n"
    )
}

/// Where this user's questions are.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(format!("/tmp/stackglass-peek-{}", user()))
}

/// Whether a folder is this user's, and nobody else may enter.
pub(crate) fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user() && meta.mode() & 0o077 == 0)
}

/// Locks a question as `how` says (flock(2)) if that is possible at once: who waits for an answer holds the lock
/// until he ends.
pub(crate) fn lock(file: &File, how: i32) -> bool {
    // SAFETY: a system call with a descriptor that is open.
    unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) == 0 }
}

fn user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
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
