//! Snapshots that become a part of the recording.
//!
//! They are added when the recording is complete. Until then, each is a file beside it. The file stays if adding it fails.

use crate::recording::Observer;
use stackglass_files::heapsnapshot;
use stackglass_profile::{AllocatingProcess, ReachedBlocks, Recording};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A complete snapshot.
pub(super) struct Snapshot {
    /// Its file.
    pub(super) file: PathBuf,
    /// CLOCK_MONOTONIC in nanoseconds when the program was copied.
    pub(super) clock: u64,
    /// The name and id of the process.
    pub(super) program: String,
    /// What it contains, for the user.
    pub(super) text: String,
    /// Which blocks something holds, by stack.
    pub(super) reached: Vec<ReachedBlocks>,
}

/// The snapshots of a recording.
pub(in crate::launch) struct AddedSnapshots {
    recording: PathBuf,
    /// They are kept inside the recording.
    are_inside: bool,
    /// The process whose snapshots are of its end.
    are_of_end: Option<u32>,
    snapshots: Vec<Snapshot>,
    /// How long the program waited at its end.
    waited: Duration,
}

impl AddedSnapshots {
    /// `are_of_end` is the process whose snapshots are of its end, if they are.
    pub(super) fn new(recording: &Path, are_inside: bool, are_of_end: Option<u32>) -> AddedSnapshots {
        AddedSnapshots {
            recording: recording.to_owned(),
            are_inside,
            are_of_end,
            snapshots: Vec::new(),
            waited: Duration::ZERO,
        }
    }

    pub(super) fn recording(&self) -> &Path {
        &self.recording
    }

    /// The file of a snapshot until the recording is complete: `app.glass.1.heapsnapshot`.
    pub(super) fn file(&self, number: u32) -> PathBuf {
        let mut path = self.recording.clone().into_os_string();
        path.push(format!(".{number}.heapsnapshot"));
        path.into()
    }

    pub(super) fn add(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    pub(super) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// A remark for the recording, whose times include the wait.
    pub(in crate::launch) fn remark(&self) -> Option<String> {
        let waited = self.waited.as_secs_f64();
        (waited > 0.0).then(|| format!("the program waited {waited:.1} s at its end for its heap snapshot"))
    }

    /// Says in the recording which of the blocks that are alive at the end something holds, if a snapshot of that moment tells.
    pub(in crate::launch) fn set_reached(&self, recording: &mut Recording) {
        let Some(pid) = self.are_of_end else { return };
        let Some(snapshot) = self.snapshots.last() else { return };
        let of_pid = |process: &AllocatingProcess| {
            let known = recording.processes.get(process.process.0 as usize);
            known.is_some_and(|known| known.pid == pid)
        };
        // An image of the process that it has replaced has ended before.
        let last = recording.allocations.processes.iter().rev().find(|process| of_pid(process));
        if let Some(process) = last.map(|process| process.process) {
            recording.set_reached(process, &snapshot.reached);
        }
    }

    /// Adds the snapshots to the recording, which is complete.
    pub(in crate::launch) fn add_to_recording(self, observer: &mut dyn Observer) {
        if !self.are_inside {
            return;
        }
        for snapshot in &self.snapshots {
            match heapsnapshot::add_to_recording(&self.recording, &snapshot.file, snapshot.clock) {
                // If the file cannot be removed, it is a second copy: nothing is lost.
                Ok(()) => drop(std::fs::remove_file(&snapshot.file)),
                Err(error) => observer.note(&format!(
                    "the heap snapshot stays outside of the recording, in {}: {error}",
                    snapshot.file.display()
                )),
            }
        }
    }
}
