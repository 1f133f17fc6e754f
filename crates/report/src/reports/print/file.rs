//! Reports in files, which appear only when they are complete.

use super::{FILE_COLUMNS, Report, ReportError, Written};
use crate::Source;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

impl Report {
    /// Writes the report to a file, which appears under its name only when it is complete. It is [`FILE_COLUMNS`] wide
    /// unless [`Report::cols`] was called. An existing file is replaced; its permissions are kept.
    ///
    /// # Errors
    /// As [`Report::write`], with the name of the file.
    pub fn write_to_path<'a>(
        &self,
        source: impl Into<Source<'a>>,
        path: impl AsRef<Path>,
    ) -> Result<Written, ReportError> {
        let path = path.as_ref();
        let report = if self.has_cols { self.clone() } else { self.clone().cols(FILE_COLUMNS) };
        let written = match path.metadata() {
            // Devices and pipes are written to, not replaced.
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(ReportError::Io);
                file.and_then(|file| report.write_into(source.into(), file))
            }
            _ => report.replace(source.into(), path),
        };
        written.map_err(|error| match error {
            ReportError::Io(source) => ReportError::File { path: path.to_owned(), source },
            other => other,
        })
    }

    fn replace(&self, source: Source<'_>, path: &Path) -> Result<Written, ReportError> {
        // Replaces the target of a link, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (file, unfinished) = beside(&path)?;
        let written = take_permissions(&file, &path).map_err(ReportError::Io);
        let written = written.and_then(|()| self.write_into(source, file));
        let written = written.and_then(|written| Ok(fs::rename(&unfinished, &path).map(|()| written)?));
        if written.is_err() {
            // A failure to remove it cannot be handled.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_into(&self, source: Source<'_>, file: File) -> Result<Written, ReportError> {
        let mut out = BufWriter::new(file);
        let written = self.write(source, &mut out)?;
        out.flush()?;
        Ok(written)
    }
}

/// Creates a file with a new name in the same folder.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let process = std::process::id();
    let mut number = 0;
    loop {
        let name = path.with_file_name(format!(".stackglass-{process}-{number}.part"));
        match File::options().write(true).create_new(true).open(&name) {
            // Left by an earlier process with this id, or in use by another thread.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => number += 1,
            file => return Ok((file?, name)),
        }
    }
}

/// Copies the permissions of the file to be replaced.
fn take_permissions(file: &File, path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(meta) => file.set_permissions(meta.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
