//! Test programs: compiled by `cc`, started, and ended with the test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::compiled;

/// A running test program.
pub struct Program {
    pub child: Child,
    out: BufReader<ChildStdout>,
}

/// `tests/programs/NAME.c`, compiled, with a name of its own.
pub fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    renamed(&compiled("cc", &source, name, &["-O1", "-g", "-pthread"]))
}

/// A program under a name that no other process has.
pub fn renamed(program: &Path) -> PathBuf {
    let name = program.file_name().and_then(|name| name.to_str()).expect("the name of a program is text");
    let other = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique(name));
    std::fs::hard_link(program, &other).expect("the target folder can be written");
    other
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
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a test program starts");
        let mut out = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a test program writes a line");
        (Program { child, out }, line.trim().to_owned())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its next line; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a test program writes text");
        line.trim().to_owned()
    }

    /// Writes to its standard input.
    pub fn order(&mut self, order: &str) {
        let input = self.child.stdin.as_mut().expect("it is a pipe");
        input.write_all(order.as_bytes()).expect("a test program reads");
    }

    /// Ends its standard input. Returns its last line.
    pub fn finish(&mut self) -> String {
        self.child.stdin = None;
        self.line()
    }

    /// Whether it runs on.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            eprintln!("the program had ended: {status}");
        }
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

/// Processes with the name of `pid`, except itself: its copies, and what is left of them.
pub fn relatives(pid: u32) -> Vec<Relative> {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let own = name(pid);
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted");
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = ids.filter(|other: &u32| *other != pid && own.is_some() && name(*other) == own);
    others
        .filter_map(|other| {
            let stat = std::fs::read_to_string(format!("/proc/{other}/stat")).ok()?;
            Some(Relative { is_zombie: stat.rsplit(')').next()?.trim_start().starts_with(['Z', 'X']) })
        })
        .collect()
}

/// Another process with the same name.
#[derive(Clone, Copy, Debug)]
pub struct Relative {
    pub is_zombie: bool,
}

/// A name for a program that no other test uses, so that its copies are found.
pub fn unique(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let short = &name[..name.len().min(4)];
    format!("{short}{:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether this process has the rights of root.
pub fn is_root() -> bool {
    // SAFETY: geteuid(2) has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
