//! A program alone and the same program recorded: what it printed, said and ended with must be equal.
//!
//! Both runs have the same folder, input, variables and words before them, so that whatever differs is an effect of
//! ours. Output goes to files, so that a child that lives on holds nobody up. Lines that begin with `stackglass: ` are
//! the command's own and are left out of the comparison.

use crate::{Folder, Seen, stackglass};
use stackglass_profile::Recording;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The shortest delay that the command takes: whatever a sample does to a program, it does it most often so.
const DELAY: &str = "100us";

/// What a program did, as far as a parent or a reader of its output can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Did {
    /// What it printed.
    pub stdout: String,
    /// What it said, without the command's own lines.
    pub stderr: String,
    /// Its exit status as a shell shows it: 128+N for signal N; nothing if it had to be killed.
    pub code: Option<i32>,
}

impl Did {
    /// What differs when it is recorded, in lines for people: those that only one of them has, a few of each.
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

/// The first lines of one text that the other one has not, or has less often.
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

/// A program to be run alone and recorded.
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

/// Both runs were equal; this is what can be asked about them.
pub struct Equal {
    /// What the program did.
    pub did: Did,
    /// What was recorded the last time.
    pub recording: Recording,
}

impl Compare {
    /// A program, by path or name.
    pub fn of(program: impl AsRef<OsStr>) -> Compare {
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

    /// Words that start the program when it is alone, and the command when it is recorded, such as `sh -c … sh`.
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

    /// How often it is recorded.
    pub fn times(mut self, times: usize) -> Compare {
        self.times = times;
        self
    }

    /// Rewrites each line of output before it is compared, or leaves it out, where it differs from run to run.
    pub fn each_line(mut self, normal: fn(&str) -> Option<String>) -> Compare {
        self.normal = normal;
        self
    }

    /// Each run begins in a copy of this folder instead of an empty one.
    pub fn filled_from(mut self, folder: &Path) -> Compare {
        self.filled_from = Some(folder.to_owned());
        self
    }

    /// The longest that a run may take.
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

    /// Empties the folder, and fills it where that was asked for.
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

    /// Runs it alone once and recorded as often as was asked for; each time it must do the same.
    ///
    /// # Panics
    /// When anything differs, when the program does not end, or when the recording is not whole.
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
    /// Asserts what the program printed and how it ended, alone and recorded.
    #[track_caller]
    pub fn did(&self, stdout: &str, code: i32) -> &Equal {
        assert_eq!((self.did.stdout.as_str(), self.did.code), (stdout, Some(code)), "{}", self.did.stderr);
        self
    }

    /// What was seen of the processes whose executable has this file name.
    #[track_caller]
    pub fn seen(&self, program: &str) -> Seen {
        let seen = Seen::of(&self.recording, program);
        assert!(seen.processes > 0, "{program} is not in the recording");
        seen
    }
}
