//! `--track-allocation`: sources with the bytes that each line allocated, one `SOURCE.PID.mem` for each source and process.

use crate::message;
use clap::Args;
use stackglass_files::mem::{self, LineBytes};
use stackglass_profile::{ProcessIndex, Recording};
use stackglass_report::AllocatedLines;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which sources get files, and where.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TrackFlags {
    /// Record allocations, and write SOURCE.PID.mem beside each source: its lines with the bytes they allocated (user:
    /// sources of this Cargo workspace or folder; all: all sources; @PATH: sources at or below PATH)
    #[arg(long, group = "allocating", value_name = "user|all|@PATH", num_args = 0..=1, require_equals = true, default_missing_value = "user", value_parser = tracked)]
    pub(crate) track_allocation: Option<Tracked>,

    /// Write these files below DIR instead, at the paths of the sources
    #[arg(long, value_name = "DIR", requires = "track_allocation")]
    pub(crate) mem_dir: Option<PathBuf>,
}

/// Sources whose lines are charged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Tracked {
    /// Those of the Cargo workspace that holds the working folder; without a workspace, those below that folder.
    User,
    /// All.
    All,
    /// Those at or below a path.
    Below(PathBuf),
}

/// The value of `--track-allocation`.
fn tracked(text: &str) -> Result<Tracked, String> {
    match text {
        "user" => Ok(Tracked::User),
        "all" => Ok(Tracked::All),
        _ => match text.strip_prefix('@') {
            Some(path) if !path.is_empty() => Ok(Tracked::Below(path.into())),
            _ => Err("expected user, all or @PATH".into()),
        },
    }
}

impl Tracked {
    /// The file or folder that contains all tracked sources; `None` for all sources.
    fn root(&self, here: &Path) -> Option<PathBuf> {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        match self {
            Tracked::User => Some(workspace(&real(here.to_owned()))),
            Tracked::All => None,
            Tracked::Below(path) => Some(real(here.join(path))),
        }
    }
}

/// The folder of the Cargo workspace that holds a folder: the nearest one around it whose manifest has a `[workspace]`,
/// else the nearest one with a manifest, else the folder itself.
fn workspace(folder: &Path) -> PathBuf {
    let manifest = |folder: &&Path| folder.join("Cargo.toml").is_file();
    let is_workspace = |folder: &&Path| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        text.parse::<toml::Table>().is_ok_and(|manifest| manifest.contains_key("workspace"))
    };
    let mut packages = folder.ancestors().filter(manifest);
    let nearest = packages.clone().next();
    packages.find(is_workspace).or(nearest).unwrap_or(folder).to_owned()
}

/// Writes the files of all processes whose allocations were recorded, and says what could not be written.
/// With `quiet`, it says nothing else.
pub(crate) fn write_mem_files(recording: &Recording, flags: &TrackFlags, quiet: bool) {
    let Some(tracked) = &flags.track_allocation else { return };
    let here = std::env::current_dir().unwrap_or_default();
    let root = tracked.root(&here);
    let Written { files, problems } = write(recording, &here, root.as_deref(), flags.mem_dir.as_deref());
    if let Some((path, error)) = problems.first() {
        let more =
            if problems.len() > 1 { format!(" (and {} more)", problems.len() - 1) } else { String::new() };
        message::print(&format!("no .mem file for {}{more}: {error}", path.display()));
    }
    match files.as_slice() {
        _ if quiet => {}
        [] if problems.is_empty() => {
            message::print("no tracked source line allocated: no .mem file was written")
        }
        [] => {}
        [file] => message::print(&format!("bytes by line in {}", file.display())),
        [file, ..] => {
            message::print(&format!("bytes by line in {} files, such as {}", files.len(), file.display()))
        }
    }
}

/// What was written.
#[derive(Default)]
struct Written {
    files: Vec<PathBuf>,
    problems: Vec<(PathBuf, std::io::Error)>,
}

/// Writes the files of the sources at or below `root`. `here` is the working folder.
fn write(recording: &Recording, here: &Path, root: Option<&Path>, folder: Option<&Path>) -> Written {
    // By path in the recording: where the source is, if it is tracked. Links are resolved, so that a file with several
    // paths is written once.
    let mut sources: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut accepts = |recorded: &str| {
        let path = here.join(recorded).canonicalize().ok().filter(|path| path.is_file());
        let path = path.filter(|path| root.is_none_or(|root| path.starts_with(root)));
        path.inspect(|path| drop(sources.insert(recorded.to_owned(), path.clone()))).is_some()
    };
    let mut by_pid: BTreeMap<u32, BTreeSet<ProcessIndex>> = BTreeMap::new();
    for process in &recording.allocations.processes {
        if let Some(known) = recording.processes.get(process.process.0 as usize) {
            by_pid.entry(known.pid).or_default().insert(process.process);
        }
    }
    let charged = |lines: &BTreeMap<u64, u64>| lines.values().any(|bytes| *bytes > 0);
    let mut of_pids = Vec::new();
    let mut allocating: BTreeSet<Arc<str>> = BTreeSet::new();
    for (pid, processes) in by_pid {
        let lines =
            AllocatedLines::from_recording(recording, |process| processes.contains(&process), &mut accepts);
        allocating
            .extend(lines.files.iter().filter(|(_, lines)| charged(lines)).map(|(file, _)| file.clone()));
        of_pids.push((pid, lines));
    }
    let allocating: Vec<Arc<str>> = allocating.into_iter().collect();
    let code = stackglass_symbols::code_lines(recording, &Default::default(), &allocating);
    let mut written = Written::default();
    for (pid, lines) in of_pids {
        let mut by_source: BTreeMap<&Path, LineBytes> = BTreeMap::new();
        for (file, lines) in &lines.files {
            let Some(source) = sources.get(&**file) else { continue };
            let here = by_source.entry(source).or_default();
            for line in code.get(file).into_iter().flatten() {
                here.entry(*line).or_default();
            }
            for (line, bytes) in lines {
                let sum = here.entry(*line).or_default();
                *sum = sum.saturating_add(*bytes);
            }
        }
        for (source, lines) in by_source.iter().filter(|(_, lines)| charged(lines)) {
            match mem::write_mem(source, lines, pid, folder) {
                Ok(file) => written.files.extend(file),
                Err(error) => written.problems.push((source.to_path_buf(), error)),
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(tracked("user"), Ok(Tracked::User));
        assert_eq!(tracked("@src/a.rs"), Ok(Tracked::Below("src/a.rs".into())));
        assert!(tracked("@").is_err() && tracked("none").is_err() && tracked("").is_err());
    }

    #[test]
    fn a_workspace_is_the_nearest_one_around_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let member = top.join("crates/one");
        std::fs::create_dir_all(member.join("src")).unwrap();
        assert_eq!(workspace(&member.join("src")), member.join("src"), "no manifest");
        std::fs::write(member.join("Cargo.toml"), "[package]\nname = \"one\"\n").unwrap();
        assert_eq!(workspace(&member.join("src")), member, "a package alone");
        std::fs::write(top.join("Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\n").unwrap();
        assert_eq!(workspace(&member.join("src")), top);
        assert_eq!(workspace(&top), top);
    }

    #[test]
    fn a_path_is_that_of_a_file_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = |path: &str| Tracked::Below(path.into()).root(&top).unwrap();
        std::fs::create_dir(top.join("src")).unwrap();
        assert_eq!(root("src/../src/a.rs"), top.join("src/../src/a.rs"), "not there");
        assert_eq!(root("./src"), top.join("src"));
        assert!(top.join("src/a.rs").starts_with(root("src")));
        assert!(!top.join("src2/a.rs").starts_with(root("src")));
        assert_eq!(Tracked::All.root(&top), None);
    }
}
