//! Runs other programs, mostly Cargo, in the root of the project.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project's root")
}

/// Cargo's target folder.
pub fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The Cargo that runs this program.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// A command line, for messages.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command with inherited output. True if it succeeds.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    Ok(status.success())
}

/// Runs a command that must succeed, and returns its output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}):\n{}", shown(command), output.status, text.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command and both shows and returns its stderr (if `both`, also its stdout).
pub fn shown_and_returned(command: &mut Command, both: bool) -> Result<(bool, String)> {
    command.stderr(Stdio::piped());
    if both {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let out = child.stdout.take().map(|out| std::thread::spawn(move || echo(out)));
    let mut text = echo(child.stderr.take().expect("stderr is piped"));
    if let Some(out) = out {
        text += &out.join().expect("copying a stream does not panic");
    }
    Ok((child.wait()?.success(), text))
}

fn echo(stream: impl std::io::Read) -> String {
    let mut text = String::new();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Whether a program of this name is on the path.
pub fn on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}
