//! Compares a program alone with the same program recorded: output, errors and exit status must be equal.
//!
//! Both runs have the same folder, input, variables and launcher, so that every difference is an effect of recording. Output
//! goes to files, so that children that live on do not block the test. Lines that begin with `stackglass: ` come from the
//! command and are not compared.

use crate::{Folder, Seen, repetitions, stackglass};
use stackglass_profile::Recording;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The shortest delay that the command accepts, so that effects of samples are most frequent.
const DELAY: &str = "100us";

/// The behaviour of a program, as a parent or a reader of its output sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Did {
    /// Its stdout.
    pub stdout: String,
    /// Its stderr, without the command's lines.
    pub stderr: String,
    /// Its exit status as in a shell: 128+N for signal N; none if it was killed after the time limit.
    pub code: Option<i32>,
}

impl Did {
    /// The differences when it is recorded, as text: some lines that only one of the runs has.
    pub fn difference(&self, recorded: &Did) -> Vec<String> {
        let mut told = Vec::new();
        if self.code != recorded.code {
            told.push(format!("status alone {:?}, recorded {:?} (None: it hangs)", self.code, recorded.code));
        }
        for (stream, alone, recorded) in
            [("stdout", &self.stdout, &recorded.stdout), ("stderr", &self.stderr, &recorded.stderr)]
        {
            told.extend(only_in(alone, recorded).map(|line| format!("{stream} only alone: {line}")));
            told.extend(only_in(recorded, alone).map(|line| format!("{stream} only recorded: {line}")));
            if told.is_empty() && alone != recorded {
                told.push(format!("{stream} has the same lines in another order"));
            }
        }
        told
    }
}

/// The first lines of a text that the other text lacks, or has less often.
fn only_in<'a>(text: &'a str, other: &'a str) -> impl Iterator<Item = &'a str> {
    const SHOWN: usize = 12;
    let mut left: Vec<&str> = other.lines().collect();
    let only = text.lines().filter(move |line| match left.iter().position(|there| there == line) {
        Some(place) => {
            left.swap_remove(place);
            false
        }
        None => true,
    });
    only.take(SHOWN)
}

/// A program that runs alone and recorded.
pub struct Compare {
    program: Vec<OsString>,
    before: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    flags: Vec<OsString>,
    times: usize,
    patience: Duration,
    normal: fn(&str) -> Option<String>,
    filled_from: Option<PathBuf>,
    folder: Folder,
    recordings: Folder,
}

/// Result of equal runs.
pub struct Equal {
    /// The behaviour of the program.
    pub did: Did,
    /// The last recording.
    pub recording: Recording,
}

impl Compare {
    /// A program, by path or name.
    pub fn new(program: impl AsRef<OsStr>) -> Compare {
        Compare {
            program: vec![program.as_ref().to_owned()],
            before: Vec::new(),
            variables: Vec::new(),
            flags: Vec::new(),
            times: 1,
            patience: Duration::from_secs(80),
            normal: |line| Some(line.to_owned()),
            filled_from: None,
            folder: Folder::new(),
            recordings: Folder::new(),
        }
    }

    /// Arguments for the program.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Compare {
        self.program.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// A launcher, such as `sh -c … sh`, that starts the program alone, and the command when recorded.
    pub fn before(mut self, words: &[&str]) -> Compare {
        self.before = words.iter().map(OsString::from).collect();
        self
    }

    /// An environment variable of both runs.
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Compare {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// A flag for `record`.
    pub fn flag(mut self, flag: &str) -> Compare {
        self.flags.push(flag.into());
        self
    }

    /// How often it is recorded in a full run; see [`repetitions`].
    pub fn times(mut self, times: usize) -> Compare {
        self.times = repetitions(times);
        self
    }

    /// Rewrites or removes lines of output that differ between runs, before the comparison.
    pub fn each_line(mut self, normal: fn(&str) -> Option<String>) -> Compare {
        self.normal = normal;
        self
    }

    /// Each run starts in a copy of this folder, not in an empty one.
    pub fn filled_from(mut self, folder: &Path) -> Compare {
        self.filled_from = Some(folder.to_owned());
        self
    }

    /// Time limit of a run.
    pub fn patience(mut self, seconds: u64) -> Compare {
        self.patience = Duration::from_secs(seconds);
        self
    }

    /// Runs it alone.
    pub fn alone(&self) -> Did {
        let mut words = self.before.clone();
        words.extend(self.program.iter().cloned());
        self.run(&words)
    }

    fn recording_file(&self) -> PathBuf {
        self.recordings.path().join("r.glass")
    }

    /// Runs it under the command.
    pub fn recorded(&self) -> Did {
        let mut words = self.before.clone();
        words.push(stackglass().into());
        words.extend(["record", "--quiet", "--delay", DELAY, "-o"].map(OsString::from));
        words.push(self.recording_file().into());
        words.extend(self.flags.iter().cloned());
        words.push("--".into());
        words.extend(self.program.iter().cloned());
        self.run(&words)
    }

    /// Empties the folder and copies the given files to it.
    fn fill(&self) {
        self.folder.end_processes();
        for entry in std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            let removed = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        if let Some(from) = &self.filled_from {
            let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(self.folder.path()).status();
            assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
        }
    }

    fn run(&self, words: &[OsString]) -> Did {
        self.fill();
        let said = ["stdout", "stderr"].map(|name| self.recordings.path().join(name));
        let to = |path: &PathBuf| Stdio::from(File::create(path).expect("a temporary file can be made"));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.variables.iter().cloned()).stdin(Stdio::null());
        command.stdout(to(&said[0])).stderr(to(&said[1])).current_dir(self.folder.path());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", words[0]));
        let begin = Instant::now();
        let status = loop {
            match child.try_wait().expect("a child can be waited for") {
                Some(status) => break Some(status),
                None if begin.elapsed() < self.patience => std::thread::sleep(Duration::from_millis(2)),
                None => break None,
            }
        };
        if status.is_none() {
            self.folder.end_processes();
            let _ = child.wait();
        }
        let [stdout, stderr] = said.map(|path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.lines().filter_map(self.normal).map(|line| line + "\n").collect::<String>()
        });
        let own = |line: &&str| !line.starts_with("stackglass: ");
        let stderr = stderr.lines().filter(own).map(|line| line.to_owned() + "\n").collect();
        let code = status.map(|status| {
            status.code().unwrap_or_else(|| 128 + status.signal().expect("it was ended by a signal"))
        });
        Did { stdout, stderr, code }
    }

    /// Runs it alone once, and recorded the given number of times. All runs must behave equally.
    ///
    /// # Panics
    /// If there is a difference, if the program does not end, or if the recording is not complete.
    #[track_caller]
    pub fn is_equal(self) -> Equal {
        let alone = self.alone();
        assert!(alone.code.is_some(), "it does not end when it is alone: {alone:#?}");
        for time in 1..=self.times {
            let recorded = self.recorded();
            let differs = alone.difference(&recorded).join("\n");
            assert!(recorded == alone, "recorded (time {time}) it does something else:\n{differs}");
        }
        let (recording, completeness) = stackglass_files::read(self.recording_file())
            .unwrap_or_else(|error| panic!("there is no recording: {error}"));
        assert!(completeness.is_complete(), "{completeness}");
        assert!(!recording.processes.is_empty(), "nothing was recorded");
        Equal { did: alone, recording }
    }
}

impl Equal {
    /// Asserts output and exit status of the program, alone and recorded.
    #[track_caller]
    pub fn did(&self, stdout: &str, code: i32) -> &Equal {
        assert_eq!((self.did.stdout.as_str(), self.did.code), (stdout, Some(code)), "{}", self.did.stderr);
        self
    }

    /// Sums of the processes whose executable has this file name.
    #[track_caller]
    pub fn seen(&self, program: &str) -> Seen {
        let seen = Seen::from_recording(&self.recording, program);
        assert!(seen.processes > 0, "{program} is not in the recording");
        seen
    }
}
