//! The file that a recording is written to: the value of `--output`, and its default.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// A path for a recording. `-` is refused: a recording needs a file, and a file named `-` is never meant.
pub(crate) fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err("a recording cannot be written to stdout; name a file, such as run.glass"),
        _ => Ok(path),
    })
}

/// `rg.glass` for `/usr/bin/rg`.
pub(crate) fn default_output(program: &Path) -> PathBuf {
    let mut name = program.file_stem().unwrap_or("recording".as_ref()).to_os_string();
    name.push(".glass");
    name.into()
}

/// `server.glass` for a process that runs `/usr/bin/server`; `process.glass` if its executable is unknown.
pub(crate) fn default_output_of_process(executable: &Path) -> PathBuf {
    default_output(if executable.as_os_str().is_empty() { Path::new("process") } else { executable })
}
