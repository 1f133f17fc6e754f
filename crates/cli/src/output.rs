//! The file that a recording is written to: the value of `--output`, and its default.

use clap::builder::{PathBufValueParser, TypedValueParser};
use stackglass_files::claim_free_name;
use std::path::{Path, PathBuf};

/// A path for a recording. `-` is refused: a recording needs a file, and a file named `-` is never meant.
pub(crate) fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err("a recording cannot be written to stdout; name a file, such as run.glass"),
        _ => Ok(path),
    })
}

/// The file of a recording whose name was not given: `rg.glass` for `/usr/bin/rg`; if that exists, `rg-2.glass`, and so on.
/// It is created at once, so that another recording chooses another name.
pub(crate) fn default_output(program: &Path) -> Output {
    let mut name = program.file_stem().unwrap_or("recording".as_ref()).to_os_string();
    name.push(".glass");
    Output { path: claim_free_name(Path::new(&name), None), claimed: true }
}

/// `server.glass` for a process that runs `/usr/bin/server`; `process.glass` if its executable is unknown. A number is
/// added as by [`default_output`].
pub(crate) fn default_output_of_process(executable: &Path) -> Output {
    default_output(if executable.as_os_str().is_empty() { Path::new("process") } else { executable })
}

/// A file to write. Dropping it removes a file of a chosen name that is still empty.
pub(crate) struct Output {
    path: PathBuf,
    claimed: bool,
}

impl Output {
    /// A file that the user has named.
    pub(crate) fn named(path: PathBuf) -> Output {
        Output { path, claimed: false }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.claimed && self.path.metadata().is_ok_and(|file| file.len() == 0) {
            // Nothing can be done if that fails.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.glass");
        std::fs::write(&path, "").unwrap();
        drop(Output::named(path.clone()));
        assert!(path.exists());
        drop(Output { path: path.clone(), claimed: true });
        assert!(!path.exists());
    }
}
