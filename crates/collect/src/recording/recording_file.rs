//! The file of a recording that grows, and what is told of its growth: the same for a program that we started and for
//! a process that ran already.

use super::{Observer, Progress, Saved};
use crate::Recorder;
use crate::recording::recorder::Totals;
use stackglass_files::GlassWriter;
use stackglass_procfs::clock;
use stackglass_profile::{Nanos, Recording};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The growing file.
pub(crate) struct RecordingFile {
    path: PathBuf,
    writer: GlassWriter,
    /// A write has failed and was told of; later ones are tried all the same.
    failed: bool,
    snapshots: u32,
}

impl RecordingFile {
    /// The file that `writer` has begun at `path`.
    pub(crate) fn new(path: &Path, writer: GlassWriter) -> RecordingFile {
        RecordingFile { path: path.to_owned(), writer, failed: false, snapshots: 0 }
    }

    /// Writes what has come since.
    pub(crate) fn append(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        match self.writer.append(recorder.recording()) {
            Ok(_) => recorder.settle(),
            Err(error) if !self.failed => {
                self.failed = true;
                observer.note(&format!("{error}; the recording goes on in memory"));
                recorder.remark(error.to_string());
            }
            Err(_) => {}
        }
    }

    /// The samples were forgotten: the file forgets them as well.
    pub(crate) fn begin_anew(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let about = recorder.about_mut();
        about.start = Nanos(clock::monotonic());
        about.started = clock::realtime();
        match GlassWriter::create(&self.path, &recorder.recording().about) {
            Ok(writer) => self.writer = writer,
            Err(error) => observer.note(&format!("the recording's file does not begin anew: {error}")),
        }
    }

    /// Writes a complete recording as of now beside the growing one.
    pub(crate) fn save_beside(&mut self, mut recording: Recording, observer: &mut dyn Observer) {
        self.snapshots += 1;
        let path = snapshot_path(&self.path, self.snapshots);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        let result = stackglass_files::write(&path, &recording);
        let totals = result.inspect_err(|error| observer.note(&error.to_string())).ok();
        observer.snapshot(&recording, &Saved { path, totals });
    }

    /// Names everything and completes the file.
    pub(crate) fn finish(mut self, mut recording: Recording, observer: &mut dyn Observer) {
        // Samples first: whatever happens while names are looked for, they are on disk. What fails
        // here is tried again, and told, below.
        let _ = self.writer.append(&recording);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        let result = self.writer.finish(&recording);
        let totals = result.inspect_err(|error| observer.note(&error.to_string())).ok();
        observer.recorded(&recording, &Saved { path: self.path, totals });
    }
}

/// `demo.glass` becomes `demo-1.glass`.
fn snapshot_path(output: &Path, number: u32) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let extension = output.extension().map_or("glass".into(), |extension| extension.to_string_lossy());
    output.with_file_name(format!("{stem}-{number}.{extension}"))
}

/// The state at the last progress call.
#[derive(Default)]
pub(crate) struct LastTold {
    at: Duration,
    awake: u64,
}

impl LastTold {
    /// What is to be told now, `elapsed` after the start.
    pub(crate) fn progress(
        &mut self,
        elapsed: Duration,
        totals: Totals,
        processes: usize,
        sampling: bool,
    ) -> Progress {
        let passed = (elapsed - self.at).as_nanos().max(1) as f64;
        let running = totals.awake.saturating_sub(self.awake) as f64 / passed;
        *self = LastTold { at: elapsed, awake: totals.awake };
        Progress {
            elapsed,
            samples: totals.hits,
            processes,
            threads: totals.threads,
            running,
            cut: totals.cut as f64 / totals.hits.max(1) as f64,
            sampling,
        }
    }

    /// The samples were forgotten, and what they summed to.
    pub(crate) fn forget(&mut self) {
        self.awake = 0;
    }
}
