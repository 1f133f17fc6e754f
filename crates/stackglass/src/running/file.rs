//! The file of a run. A separate thread appends to it, so that a slow disk delays nothing else.

use stackglass_collect::in_process::Collector;
use stackglass_files::{GlassWriter, WriteError};
use stackglass_profile::{Recording, RecordingInfo, sanitize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between two appends: the most that a crash can lose.
const APPEND: Duration = Duration::from_millis(250);

pub(super) struct File {
    path: PathBuf,
    /// `None` once the file is complete.
    writer: Mutex<Option<GlassWriter>>,
}

impl File {
    pub(super) fn create(path: &Path, info: &RecordingInfo) -> Result<File, WriteError> {
        let writer = GlassWriter::create(path, info)?;
        Ok(File { path: path.to_path_buf(), writer: Mutex::new(Some(writer)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the samples of `collector` again and again, until the file is complete. `full`: no more samples follow.
    pub(super) fn keep_appending(&self, collector: &Collector, full: &AtomicBool) {
        loop {
            std::thread::sleep(APPEND);
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(open) = writer.as_mut() else { return };
            let appended = collector.with(|recorder| {
                let appended = open.append(recorder.recording());
                recorder.settle();
                appended
            });
            // The disk is full: the file stays readable, and a later append tries again.
            if appended.is_err() && full.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Completes the recording. Errors are printed on standard error, and the program continues.
    pub(super) fn finish(&self, recording: &Recording) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return };
        let mut named = recording.clone();
        stackglass_symbols::symbolize(&mut named, &stackglass_symbols::Options::default(), &mut |_| {});
        if let Err(error) = writer.finish(&named) {
            let line = format!("{} stays incomplete: {error}", self.path.display());
            eprintln!("stackglass: {}", sanitize(&line));
        }
    }
}
