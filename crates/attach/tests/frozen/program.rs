//! Test programs: compiled by `cc`, started, and ended with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A running test program.
pub struct Program {
    pub child: Child,
    _out: BufReader<ChildStdout>,
}

/// Compiles `tests/programs/NAME.c` once for each test process.
pub fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("{name}-{}", std::process::id()));
    let status = Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()), "{name}.c does not compile");
    program
}

impl Program {
    /// Compiles and starts a program, and waits for its first line.
    pub fn start(name: &str, arguments: &[&str]) -> (Program, String) {
        let program = compile(name);
        let started = Program::spawn(Command::new(&program).args(arguments));
        let _ = std::fs::remove_file(program);
        started
    }

    /// Starts a command, and waits for its first line.
    pub fn spawn(command: &mut Command) -> (Program, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a test program starts");
        let mut out = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a test program writes a line");
        (Program { child, _out: out }, line.trim().to_owned())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs on.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds, at most ten seconds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes with the same executable as `pid`, without `pid`: its copies, zombies included (by their name).
pub fn relatives(pid: u32) -> Vec<u32> {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let own = name(pid);
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted");
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|other| *other != pid && own.is_some() && name(*other) == own).collect()
}
