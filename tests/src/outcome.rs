//! What came out of a run.

use crate::{Folder, Seen, stackglass};
use stackglass_files::Completeness;
use stackglass_profile::Recording;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// A program that was run under the command.
pub struct Outcome {
    /// How the command ended.
    pub status: ExitStatus,
    /// What the program printed.
    pub stdout: String,
    /// What program and command said.
    pub stderr: String,
    /// Where the recording is.
    pub file: PathBuf,
    /// Time from start to end, roughly.
    pub wall: Duration,
    /// Everything of this run; removed at the end, and its processes are killed.
    pub folder: Folder,
}

impl Outcome {
    /// The exit status as a shell shows it: 128+N for signal N.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Asserts what the program printed and how it ended.
    #[track_caller]
    pub fn program_did(&self, stdout: &str, code: i32) -> &Outcome {
        assert_eq!(self.stdout, stdout, "stderr:\n{}", self.stderr);
        assert_eq!(self.code(), code, "stderr:\n{}", self.stderr);
        self
    }

    /// The recording, which must be whole.
    #[track_caller]
    pub fn recording(&self) -> Recording {
        let (recording, completeness) = self.read();
        assert!(completeness.is_complete(), "incomplete; stderr:\n{}", self.stderr);
        recording
    }

    /// The recording, whole or not.
    #[track_caller]
    pub fn read(&self) -> (Recording, Completeness) {
        match stackglass_files::read(&self.file) {
            Ok(read) => read,
            Err(error) => panic!("{}: {error}\nstderr:\n{}", self.file.display(), self.stderr),
        }
    }

    /// What was seen of the processes whose executable has this file name.
    #[track_caller]
    pub fn seen(&self, program: &str) -> Seen {
        let seen = Seen::of(&self.recording(), program);
        assert!(seen.processes > 0, "{program} is not in the recording; stderr:\n{}", self.stderr);
        seen
    }

    /// Lines of stderr that contain a text.
    pub fn lines_about(&self, text: &str) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.contains(text)).collect()
    }

    /// True when stderr has these words, wherever its lines were broken.
    pub fn says(&self, words: &str) -> bool {
        self.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
    }

    /// Shows the recording by the command, which must be able to.
    #[track_caller]
    pub fn print(&self) -> String {
        let mut print = Command::new(stackglass());
        let output = print.arg("print").arg(&self.file).output().expect("the command can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "print failed: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
