//! Result of a run.

use crate::{Folder, Seen, stackglass};
use stackglass_files::Completeness;
use stackglass_profile::Recording;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// A program that has run under the command.
pub struct Outcome {
    /// Exit status of the command.
    pub status: ExitStatus,
    /// Stdout of the program.
    pub stdout: String,
    /// Stderr of program and command.
    pub stderr: String,
    /// Path of the recording.
    pub file: PathBuf,
    /// Approximate time from start to end.
    pub wall: Duration,
    /// The folder of the run, removed at the end; its processes are killed.
    pub folder: Folder,
}

impl Outcome {
    /// The exit status as in a shell: 128+N for signal N.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Asserts output and exit status.
    #[track_caller]
    pub fn program_did(&self, stdout: &str, code: i32) -> &Outcome {
        assert_eq!(self.stdout, stdout, "stderr:\n{}", self.stderr);
        assert_eq!(self.code(), code, "stderr:\n{}", self.stderr);
        self
    }

    /// The recording, which must be complete.
    #[track_caller]
    pub fn recording(&self) -> Recording {
        let (recording, completeness) = self.read();
        assert!(completeness.is_complete(), "incomplete; stderr:\n{}", self.stderr);
        recording
    }

    /// The recording, complete or not.
    #[track_caller]
    pub fn read(&self) -> (Recording, Completeness) {
        match stackglass_files::read(&self.file) {
            Ok(read) => read,
            Err(error) => panic!("{}: {error}\nstderr:\n{}", self.file.display(), self.stderr),
        }
    }

    /// Sums of the processes whose executable has this file name.
    #[track_caller]
    pub fn seen(&self, program: &str) -> Seen {
        let seen = Seen::from_recording(&self.recording(), program);
        assert!(seen.processes > 0, "{program} is not in the recording; stderr:\n{}", self.stderr);
        seen
    }

    /// Lines of stderr that contain a text.
    pub fn lines_about(&self, text: &str) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.contains(text)).collect()
    }

    /// Whether stderr contains these words, with any line breaks.
    pub fn says(&self, words: &str) -> bool {
        self.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
    }

    /// The command's report of the recording.
    #[track_caller]
    pub fn print(&self) -> String {
        let mut print = Command::new(stackglass());
        let output = print.arg("print").arg(&self.file).output().expect("the command can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "print failed: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
