//! The folder of a run, whose processes end with it.
//!
//! A failed test must not leave a program behind, even if that program has left its parent, its process group or its session.
//! All programs of a run have the folder in common: as current folder, or for their output. When the folder is dropped, at
//! the end of a test or when a failed test unwinds, all these processes are killed.
#![allow(unsafe_code, reason = "calls the C library")]

use std::path::Path;
use std::time::Duration;

/// A new folder in the temporary folder.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates one.
    ///
    /// # Panics
    /// If the temporary folder is not writable.
    #[allow(clippy::new_without_default, reason = "it writes to the disk")]
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Processes with this folder as current folder, or with input or output in it, except this process.
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

    /// Kills them, and processes that they start meanwhile.
    pub fn end_processes(&self) {
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // SAFETY: takes two numbers; the process has just been found in this test's folder.
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

    /// A test fails while its program computes in another session, with input and output elsewhere.
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
