//! The file of a recording that grows.

use super::{Observer, Saved};
use stackglass_files::{GlassWriter, WriteError, claim_free_name};
use stackglass_procfs::clock;
use stackglass_profile::{Nanos, Recorder, Recording};
use stackglass_symbols::{Debuginfod, Options};
use std::path::{Path, PathBuf};

/// The growing file.
pub(crate) struct RecordingFile {
    path: PathBuf,
    writer: GlassWriter,
    /// A write has failed and was reported. Later writes are tried all the same.
    failed: bool,
    /// The last write has failed.
    is_failing: bool,
    snapshots: u32,
}

impl RecordingFile {
    /// The file at `path` that `writer` has created.
    pub(crate) fn new(path: &Path, writer: GlassWriter) -> RecordingFile {
        RecordingFile { path: path.to_owned(), writer, failed: false, is_failing: false, snapshots: 0 }
    }

    /// Appends the samples since the last call.
    pub(crate) fn append(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let result = self.writer.append(recorder.recording());
        self.is_failing = result.is_err();
        match result {
            Ok(_) => recorder.settle(),
            Err(error) if !self.failed => {
                self.failed = true;
                observer.note(&format!("{error}; the recording goes on in memory"));
                recorder.remark(error.to_string());
            }
            Err(_) => {}
        }
    }

    /// Replaces the file by an empty one, and restarts the clock of the recording. The recorder has forgotten its samples.
    /// The replacement is atomic: a reader sees the old file or the new one.
    pub(crate) fn restart(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let info = recorder.info_mut();
        info.start = Nanos(clock::monotonic());
        info.started = clock::realtime();
        if let Err(error) = self.begin_anew(recorder.recording()) {
            observer.note(&cannot_begin_anew(&error));
        }
    }

    /// Whether samples that are in the file already may still change.
    pub(crate) fn can_be_rewritten(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|file| file.is_file())
    }

    /// Samples that are in the file have changed: it begins anew. The next write has all of them.
    pub(crate) fn rewrite(&mut self, recording: &Recording, observer: &mut dyn Observer) {
        match self.begin_anew(recording) {
            // A line has told of the same disk, and the last write tells of it again.
            Err(_) if self.is_failing => {}
            Err(error) => observer.note(&cannot_begin_anew(&error)),
            Ok(()) => {}
        }
    }

    fn begin_anew(&mut self, recording: &Recording) -> Result<(), WriteError> {
        self.writer = GlassWriter::create(&self.path, &recording.info)?;
        Ok(())
    }

    /// Writes a complete recording to another file beside the growing one: `demo-1.glass` for `demo.glass`, or the next free
    /// number.
    pub(crate) fn save_snapshot(&mut self, mut recording: Recording, observer: &mut dyn Observer) {
        let path = claim_free_name(&self.path, Some(self.snapshots + 1));
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        let result = stackglass_files::write(&path, &recording);
        let totals = result.inspect_err(|error| observer.note(&error.to_string())).ok();
        if totals.is_some() {
            self.snapshots += 1;
        } else if path.metadata().is_ok_and(|file| file.len() == 0) {
            // Nothing can be done if that fails.
            let _ = std::fs::remove_file(&path);
        }
        observer.snapshot(&recording, &Saved { path, totals });
    }

    /// Symbolizes the recording and completes the file.
    pub(crate) fn finish(mut self, mut recording: Recording, observer: &mut dyn Observer) {
        // Samples first: they are on disk whatever happens during symbolization. A failure is repeated and reported
        // below.
        let _ = self.writer.append(&recording);
        let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
        let outcome = stackglass_symbols::symbolize(&mut recording, &options, &mut |_| ());
        if let Some(message) = outcome.debuginfod {
            observer.note(&message);
        }
        let result = self.writer.finish(&recording);
        let totals = result.inspect_err(|error| observer.note(&error.to_string())).ok();
        observer.recorded(&recording, &Saved { path: self.path, totals });
    }
}

fn cannot_begin_anew(error: &WriteError) -> String {
    format!("the file of the recording cannot be restarted: {error}")
}
