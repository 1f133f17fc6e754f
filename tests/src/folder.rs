//! The folder of a run, and the end of all that was started in it.
//!
//! A test that fails must not leave a program behind, however that program has left its parent, its process group or
//! its session. What every program of a run has in common is the folder: it stands in it or writes into it. When the
//! folder is dropped, at the end of a test or while a failed test unwinds, all such processes are killed.
#![allow(unsafe_code, reason = "calls the C library")]

use std::path::Path;
use std::time::Duration;

/// A new empty folder in the temporary folder.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Makes one.
    ///
    /// # Panics
    /// When the temporary folder cannot be written.
    #[allow(clippy::new_without_default)] // it makes something on the disk
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Processes that stand in this folder or have their input or output in it; this process is never one.
    pub fn processes(&self) -> Vec<i32> {
        let folder = self.path();
        let own = std::process::id() as i32;
        let inside = |link: String| std::fs::read_link(link).is_ok_and(|target| target.starts_with(folder));
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(|pid| *pid != own)
            .filter(|pid| {
                ["cwd", "fd/0", "fd/1", "fd/2"].iter().any(|name| inside(format!("/proc/{pid}/{name}")))
            })
            .collect()
    }

    /// Kills them, and what they start meanwhile.
    pub fn end_processes(&self) {
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // SAFETY: takes two numbers; the process was seen in this test's own folder a moment ago.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.end_processes();
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;
    use std::process::{Command, Stdio};

    /// A test fails while a busy program of its own runs in another session, with its input and output elsewhere.
    #[test]
    fn what_a_failed_test_has_started_is_ended() {
        let (send, receive) = std::sync::mpsc::channel();
        let failed = std::thread::spawn(move || {
            let folder = Folder::new();
            let mut busy = Command::new("setsid");
            busy.args(["sh", "-c", "sh -c 'while :; do :; done' & while :; do :; done"]);
            busy.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut busy = busy.current_dir(folder.path()).spawn().expect("setsid is there");
            while folder.processes().len() < 2 {
                std::thread::yield_now();
            }
            send.send((folder.path().to_owned(), folder.processes())).expect("the other end is there");
            std::panic::resume_unwind(Box::new(busy.try_wait().is_ok()));
        });
        let (path, processes) = receive.recv().expect("two processes start");
        assert!(failed.join().is_err() && !path.exists());
        for pid in processes {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(state.is_empty() || state.contains(") Z "), "{state}");
        }
    }
}
