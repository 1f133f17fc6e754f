//! One run of a program under `stackglass record`.
#![allow(unsafe_code, reason = "calls the C library")]

use crate::{Folder, Outcome, stackglass};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time of a test before it is killed and fails.
const PATIENCE: Duration = Duration::from_secs(100);

/// A program, and how it is recorded.
pub struct Record {
    flags: Vec<OsString>,
    program: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    before: Vec<OsString>,
    output: Option<PathBuf>,
    folder: Folder,
}

impl Record {
    /// A program, recorded into a separate folder.
    pub fn new(program: impl AsRef<OsStr>) -> Record {
        Record {
            flags: Vec::new(),
            program: vec![program.as_ref().to_owned()],
            variables: Vec::new(),
            before: Vec::new(),
            output: None,
            folder: Folder::new(),
        }
    }

    /// Arguments for the program.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Record {
        self.program.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// A flag for `record`.
    pub fn flag(mut self, flag: impl AsRef<OsStr>) -> Record {
        self.flags.push(flag.as_ref().to_owned());
        self
    }

    /// An environment variable.
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Record {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// A launcher of the command, such as `sh -c … sh`.
    pub fn before(mut self, words: &[&str]) -> Record {
        self.before = words.iter().map(OsString::from).collect();
        self
    }

    /// Another path of the recording.
    pub fn output(mut self, path: impl AsRef<Path>) -> Record {
        self.output = Some(path.as_ref().to_owned());
        self
    }

    /// The folder of this run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| self.folder.path().join("host.glass"))
    }

    /// Starts it. Output goes to files, so that children that live on do not block the test.
    pub fn start(self) -> Running {
        let mut words = self.before.clone();
        words.push(stackglass().into());
        words.push("record".into());
        words.push("-o".into());
        words.push(self.file().into());
        words.extend(self.flags.iter().cloned());
        words.push("--".into());
        words.extend(self.program.iter().cloned());
        let to = |name: &str| {
            let file = std::fs::File::create(self.folder.path().join(name));
            Stdio::from(file.expect("a temporary file can be made"))
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.variables.iter().cloned()).stdin(Stdio::null());
        command.stdout(to("stdout")).stderr(to("stderr")).current_dir(self.folder.path());
        let child = command.spawn().expect("the command can be started");
        Running { child, file: self.file(), folder: self.folder }
    }

    /// Runs it to its end.
    pub fn run(self) -> Outcome {
        self.start().wait()
    }
}

/// A program that is running.
pub struct Running {
    child: Child,
    file: PathBuf,
    folder: Folder,
}

impl Running {
    /// Process id of the command.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The output of the program so far.
    pub fn stdout(&self) -> String {
        read(&self.folder.path().join("stdout"))
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: i32) {
        let pid = self.child.id() as libc::pid_t;
        // SAFETY: takes two numbers; the child was not reaped, so its id is valid.
        let status = unsafe { libc::kill(pid, signal) };
        assert_eq!(status, 0, "signal {signal} can be sent");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it takes longer than the limit of a test.
    pub fn wait(mut self) -> Outcome {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break status,
                None if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    let _ = self.child.kill();
                    let said = read(&self.folder.path().join("stderr"));
                    panic!("stands still for {} s; it said:\n{said}", PATIENCE.as_secs());
                }
            }
        };
        let stdout = read(&self.folder.path().join("stdout"));
        let stderr = read(&self.folder.path().join("stderr"));
        Outcome { status, stdout, stderr, file: self.file, wall: begin.elapsed(), folder: self.folder }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}
