//! Runs the command as a user does: in a separate folder, in a pipe or at a terminal.

// Not every test uses all of it.
#![allow(dead_code)]

pub mod samples;
pub mod target;

mod received;

pub use received::Received;

use stackglass_profile::Recording;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder to run the command in. Processes that still run in it are killed on drop, also after a failure.
pub struct Place(whole_programs::Folder);

impl Place {
    /// An empty folder.
    pub fn new() -> Place {
        Place(whole_programs::Folder::new())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command with these arguments, not started.
    pub fn stackglass<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(stackglass());
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("COLUMNS")
            .env_remove("LINES")
            .env_remove("NO_COLOR");
        command
    }

    /// The command where perf events are refused, so that ptrace is used if it is asked for.
    #[allow(dead_code, reason = "not all tests use it")]
    pub fn stackglass_without_perf<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let refused = whole_programs::host("refused", whole_programs::Language::C);
        let mut command = Command::new(refused);
        command.arg(stackglass()).args(arguments).current_dir(self.path()).env_remove("COLUMNS");
        command
    }

    /// Runs the command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        self.stackglass(arguments).stdin(Stdio::null()).output().expect("the command starts")
    }

    /// Reads a recording in this folder that must be complete.
    pub fn recording(&self, name: &str) -> Recording {
        let (recording, completeness) = stackglass_files::read(self.file(name)).expect("it can be read");
        assert!(completeness.is_complete(), "{completeness}");
        recording
    }

    /// Waits until a file of this name exists and is not empty.
    pub fn await_file(&self, name: &str) {
        let path = self.file(name);
        wait_until(name, || path.metadata().is_ok_and(|meta| meta.len() > 0));
    }
}

/// The command's executable.
pub fn stackglass() -> &'static str {
    whole_programs::stackglass().to_str().expect("the target folder has a readable name")
}

/// Waits until the condition is true.
pub fn wait_until(what: &str, is_true: impl FnMut() -> bool) {
    wait_or_tell(|| what.to_owned(), is_true);
}

/// Waits until the condition is true. If that takes too long, the message says `what`.
fn wait_or_tell(what: impl Fn() -> String, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a child.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("the child is ours");
}

/// Exit status of a child, which must end in time.
pub fn end_of(child: &mut Child) -> Option<i32> {
    let mut status = None;
    wait_until("the command's end", || {
        status = child.try_wait().expect("the child is ours");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// The text of a stream of a finished command.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A terminal with the command in its foreground.
pub struct Terminal {
    master: File,
    pub child: Child,
    received: Arc<Mutex<Received>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    /// Starts a command in a new session whose terminal is a new one.
    pub fn start(command: Command) -> Terminal {
        let (master, child) = Terminal::unread(command);
        let mut stream = master.try_clone().expect("a descriptor is free");
        let received = Arc::new(Mutex::new(Received::new()));
        let all = received.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Ends with EIO when the last program has left the terminal.
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                all.lock().expect("nobody panics with it").add(&buffer[..n]);
            }
        });
        Terminal { master, child, received, reader }
    }

    /// The same without a reader: the terminal is gone when the file is dropped.
    pub fn unread(mut command: Command) -> (File, Child) {
        let (master, slave) = open_terminal();
        // setsid(1) makes a session with its stdin as the terminal.
        let mut in_session = Command::new("setsid");
        in_session.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => in_session.env(name, value),
                None => in_session.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            in_session.current_dir(folder);
        }
        command = in_session;
        let stream = || Stdio::from(slave.try_clone().expect("a descriptor is free"));
        command.env("TERM", "xterm").stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().expect("setsid is there");
        (master, child)
    }

    /// Types keys.
    pub fn type_keys(&mut self, keys: &[u8]) {
        self.master.write_all(keys).expect("the terminal is there");
    }

    /// The output so far.
    pub fn output(&self) -> String {
        self.received.lock().expect("nobody panics with it").text()
    }

    /// The text on the screen.
    pub fn screen(&self) -> String {
        self.received.lock().expect("nobody panics with it").screen()
    }

    /// Waits until the screen shows this text in one line.
    pub fn await_shown(&self, what: &str) {
        self.await_screen(what, |screen| screen.contains(what));
    }

    /// Types keys, and waits until the screen shows this text in one line.
    pub fn type_until(&mut self, keys: &[u8], what: &str) {
        self.type_keys(keys);
        self.await_shown(what);
    }

    /// Waits until the condition is true of the screen.
    pub fn await_screen(&self, what: &str, is_true: impl Fn(&str) -> bool) {
        wait_or_tell(|| format!("{what}:\n{}", self.screen()), || is_true(&self.screen()));
    }

    /// Waits until the output contains this text `times` times. Of a program that draws, only sequences that act on the
    /// terminal arrive whole; for words there is [`Terminal::await_shown`].
    pub fn await_text(&self, what: &str, times: usize) {
        let found = || self.output().matches(what).count() >= times;
        wait_or_tell(|| format!("{what}: {}", self.output()), found);
    }

    /// Keys come as lines and are echoed.
    pub fn reads_lines(&self) -> bool {
        use rustix::termios::{LocalModes, tcgetattr};
        let modes = tcgetattr(&self.master).expect("the terminal is there").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the end, and returns the exit status and the whole output.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = end_of(&mut self.child);
        self.reader.join().expect("reading does not panic");
        let output = self.received.lock().expect("nobody panics with it").text();
        (status, output)
    }
}

fn open_terminal() -> (File, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal is free");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let size =
        Winsize { ws_row: received::ROWS.get(), ws_col: received::COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master.as_fd(), size).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("it opens");
    (master.into(), slave)
}
