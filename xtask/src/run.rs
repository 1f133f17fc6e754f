//! Running other programs: Cargo above all, always from the root of the project.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project's root")
}

/// Where Cargo puts what it builds for us.
pub fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Cargo, as it was called for us.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// A command as one would type it, for messages.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command with our own output; true when it succeeds.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    Ok(status.success())
}

/// Runs a command that must succeed and gives back what it prints.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}):\n{}", shown(command), output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, shows what it says on stderr (`stdout` too when `both`) and gives it back as well.
pub fn overheard(command: &mut Command, both: bool) -> Result<(bool, String)> {
    command.stderr(Stdio::piped());
    if both {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let out = child.stdout.take().map(|out| std::thread::spawn(move || echo(out)));
    let mut said = echo(child.stderr.take().expect("stderr is piped"));
    if let Some(out) = out {
        said += &out.join().expect("copying a stream does not panic");
    }
    Ok((child.wait()?.success(), said))
}

fn echo(stream: impl std::io::Read) -> String {
    let mut said = String::new();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        said.push_str(&line);
        said.push('\n');
    }
    said
}

/// True when a program of this name is on the path.
pub fn on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}
