//! Programs to attach to, and whether stackglass has left them alone.

use super::{stackglass, wait_until};
use std::fs;
use std::process::{Child, Command, Stdio};

/// The main thread of the workload, and those that it starts (`crates/demo`).
const WORKLOAD_THREADS: usize = 8;

/// A running program to attach to; it is killed on drop.
pub struct Target(pub Child);

impl Target {
    /// The workload of `demo`: several threads, busy and asleep. All of them have been started.
    pub fn start_workload() -> Target {
        let mut command = Command::new(stackglass());
        command.args(["demo-workload", "--time", "120s"]);
        let target = Target::start(command);
        wait_until("its threads", || target.threads().len() == WORKLOAD_THREADS);
        target
    }

    /// Starts a command without input and output.
    pub fn start(mut command: Command) -> Target {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let program = Target(child);
        // Between fork and exec it is still this executable.
        let name = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wait_until("the program", || {
            name(&program.pid()) != name("self") && !name(&program.pid()).is_empty()
        });
        program
    }

    /// Its process id.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// A field of `/proc/PID/task/TID/status`.
    pub fn status(&self, tid: &str, field: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/task/{tid}/status", self.pid())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or("").trim().to_owned()
    }

    /// The ids of its threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        tasks.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// No thread is traced, and none is stopped.
    pub fn is_untouched(&self) -> bool {
        self.threads().iter().all(|tid| {
            matches!(self.status(tid, "State").chars().next(), Some('R' | 'S' | 'D') | None)
                && matches!(self.status(tid, "TracerPid").as_str(), "0" | "")
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
