//! For whom a peek is: who has asked by `stackglass peek PID`, or whoever reads standard error.
//!
//! A request is a signal, and a question (`peek_question`) is put up before its signal is sent. So whoever answers looks, when
//! requests have come, for questions; a request without one is for standard error. Each question gets a peek of its own,
//! in order; each peek is answered, from its first line to its last, where it was asked for.

use crate::peek_question::{CUT_SHORT, LONGEST, WHOLE, Wishes, folder, is_private, lock};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// A signal without a question that comes so soon after a question is the one that was sent for it.
const LATE_SIGNAL: Duration = Duration::from_millis(50);

/// For whom a peek is.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// The question; `None`: standard error.
    file: Option<Arc<File>>,
    wishes: Wishes,
}

impl Audience {
    /// Whoever reads standard error.
    pub fn stderr() -> Audience {
        Audience::default()
    }

    /// Whether that is whoever reads standard error.
    pub fn is_stderr(&self) -> bool {
        self.file.is_none()
    }

    /// How the peek shall be.
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_gone(&self) -> bool {
        self.file.as_ref().is_some_and(|file| lock(file, libc::LOCK_SH))
    }

    /// Gives a part of the answer to whoever asked. False for standard error, where the caller writes it.
    pub fn give(&self, text: &[u8]) -> bool {
        let Some(mut file) = self.file.as_deref() else { return false };
        // Nothing can be done where the disk is full.
        let _ = file.write_all(text);
        true
    }

    /// Ends the answer; `whole` unless the process has ended before it should.
    pub fn end(&self, whole: bool) {
        self.give(&[if whole { WHOLE } else { CUT_SHORT }]);
    }
}

/// Looks for questions to one process.
#[derive(Debug)]
pub struct Questions {
    pid: u32,
    folder: PathBuf,
    last: Option<Instant>,
}

impl Questions {
    /// Questions to process `pid`.
    pub fn to(pid: u32) -> Questions {
        Questions { pid, folder: folder(), last: None }
    }

    /// For whom so many new requests are: who asked first comes first.
    pub fn hear(&mut self, requests: u32) -> Vec<Audience> {
        if requests == 0 {
            return Vec::new();
        }
        let mut found = self.take();
        let late = self.last.is_some_and(|last| last.elapsed() < LATE_SIGNAL);
        if !found.is_empty() {
            self.last = Some(Instant::now());
        }
        if requests as usize > found.len() && !(found.is_empty() && late) {
            found.insert(0, Audience::stderr());
        }
        found
    }

    /// Takes all questions out of the folder.
    fn take(&self) -> Vec<Audience> {
        // Nearly always there is no such folder: one system call.
        if !is_private(&self.folder) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let asked = format!("{}.", self.pid);
        let mut found: Vec<(SystemTime, Audience)> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&asked))
            .filter_map(|entry| take(&entry.path()))
            .filter(|(_, audience)| !audience.is_gone())
            .collect();
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, audience)| audience).collect()
    }
}

/// Takes one question away; when it was put up, and who asks.
fn take(path: &Path) -> Option<(SystemTime, Audience)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path);
    let _ = fs::remove_file(path);
    let file = file.ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.mode() & 0o077 == 0)?;
    let mut line = [0; LONGEST];
    let n = (&file).read(&mut line).ok()?;
    let wishes = Wishes::parse(&line[..n]);
    Some((meta.modified().ok()?, Audience { file: Some(Arc::new(file)), wishes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peek_question::{Answered, Question};

    fn questions(folder: &Path, pid: u32) -> Questions {
        Questions { pid, folder: folder.to_owned(), last: None }
    }

    #[test]
    fn an_answer_comes_in_parts_and_ends() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let wishes = Wishes { columns: Some(60), ..Wishes::default() };
        let mut question = Question::in_folder(&folder, 7, &wishes).unwrap();
        let [stderr] = &questions(&folder, 8).hear(1)[..] else { panic!("a question to another process") };
        assert!(stderr.is_stderr() && !stderr.give(b"text") && !stderr.is_gone());
        let mut all = questions(&folder, 7);
        assert!(all.hear(0).is_empty());
        assert!(!question.is_taken());
        let [audience] = &all.hear(1)[..] else { panic!("one question") };
        assert!(question.is_taken());
        assert!(!audience.is_stderr() && *audience.wishes() == wishes);
        assert_eq!(question.more().unwrap(), b"");
        assert!(audience.give(b"stacks\n"));
        assert_eq!(question.more().unwrap(), b"stacks\n");
        assert_eq!(question.answered(), None);
        audience.give(b"report\n");
        audience.end(true);
        audience.give(b"nothing more");
        assert_eq!(question.more().unwrap(), b"report\n");
        assert_eq!(question.answered(), Some(Answered::Whole));
        assert!(!audience.is_gone());
        drop(question);
        assert!(audience.is_gone(), "nobody waits");
    }

    #[test]
    fn each_question_is_taken_once_and_a_signal_alone_is_for_standard_error() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        let mut all = questions(&folder, 7);
        assert!(all.hear(1)[0].is_stderr(), "there is no folder yet");
        let _question = Question::in_folder(&folder, 7, &Wishes::default()).unwrap();
        assert!(matches!(&all.hear(1)[..], [one] if !one.is_stderr()));
        assert!(all.hear(1).is_empty(), "its own signal, after the question was seen");
        std::thread::sleep(LATE_SIGNAL);
        assert!(matches!(&all.hear(1)[..], [one] if one.is_stderr()));
        let mut second = Question::in_folder(&folder, 7, &Wishes::default()).unwrap();
        let both = all.hear(2);
        assert!(both.len() == 2 && both[0].is_stderr() && !both[1].is_stderr());
        both[1].end(false);
        second.more().unwrap();
        assert_eq!(second.answered(), Some(Answered::CutShort));
    }

    #[test]
    fn what_nobody_waits_for_is_taken_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        drop(Question::in_folder(&folder, 7, &Wishes::default()).unwrap());
        for name in ["7.1", "8.1"] {
            fs::write(folder.join(name), "stackglass-peek-1 duration=3600000000000\n").unwrap();
        }
        fs::create_dir(folder.join("7.2")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("7.3")).unwrap();
        let mut all = questions(&folder, 7);
        assert!(matches!(&all.hear(1)[..], [one] if one.is_stderr()), "who asked was killed");
        assert!(!folder.join("7.1").exists() && folder.join("8.1").exists());
    }
}
