//! Finds the sources that a recording names, on this machine, and checks whether they have changed since.
//!
//! The recording may come from another machine. Sources of dependencies are looked up in this user's Cargo folder, those
//! of the standard library where rustup installed it, and those of a package in this folder.

use stackglass_profile::{Recording, ShortPath};
use stackglass_report::annotate::SourceFile;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Larger files are not sources.
const LARGEST: u64 = 64 << 20;

/// The sources of one recording.
pub(crate) struct Sources<'r> {
    recording: &'r Recording,
    /// When the recording started, if known.
    started: Option<SystemTime>,
    /// The current folder.
    here: PathBuf,
}

impl<'r> Sources<'r> {
    pub(crate) fn from_recording(recording: &'r Recording) -> Sources<'r> {
        let started = Some(recording.info.started).filter(|started| *started > 0);
        let started = started.and_then(|ns| SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(ns)));
        Sources { recording, started, here: std::env::current_dir().unwrap_or_default() }
    }

    /// The source file that the recording names, with its current text.
    pub(crate) fn read(&self, recorded: &str) -> SourceFile {
        let Some(path) = self.find(recorded) else { return SourceFile::default() };
        let found = Some(path.to_string_lossy().into_owned()).filter(|path| path != recorded);
        let text = match read(&path) {
            Ok(text) => text,
            Err(why) => {
                let remark = Some(format!("{}: {why}; showing functions instead of lines", path.display()));
                return SourceFile { found, text: None, remark };
            }
        };
        let mut remarks = Vec::new();
        if found.is_some() && !recorded.starts_with("/rustc/") {
            remarks.push(format!("read from {}", path.display()));
        }
        if self.is_newer(&path) {
            remarks.push("changed since the recording: lines may have moved".to_owned());
        }
        let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        SourceFile { found, text: Some(text), remark }
    }

    fn is_newer(&self, path: &Path) -> bool {
        let modified = path.metadata().and_then(|info| info.modified()).ok();
        modified.zip(self.started).is_some_and(|(modified, started)| modified > started)
    }

    fn find(&self, recorded: &str) -> Option<PathBuf> {
        let path = Path::new(recorded);
        if path.is_absolute() && path.is_file() {
            return Some(path.to_owned());
        }
        if !path.is_absolute() {
            return Some(self.here.join(path)).filter(|path| path.is_file());
        }
        fetched(recorded)
            .or_else(|| installed(recorded))
            .or_else(|| self.of_package(self.recording.symbols.short_path(recorded)?))
    }

    /// `@name/src/x.rs`, if the package `name` is this folder, a parent, or a folder in it.
    fn of_package(&self, short: &ShortPath) -> Option<PathBuf> {
        let name = short.prefix.strip_prefix('@')?;
        let around = self.here.ancestors().map(Path::to_owned);
        let inside = [self.here.join(name), self.here.join("crates").join(name)];
        around
            .chain(inside)
            .filter(|folder| is_package(folder, name))
            .map(|folder| folder.join(short.rest.trim_start_matches('/')))
            .find(|path| path.is_file())
    }
}

fn is_package(folder: &Path, name: &str) -> bool {
    let manifest = folder.join("Cargo.toml");
    let text = if manifest.is_file() { fs::read_to_string(manifest).ok() } else { None };
    let table = text.and_then(|text| text.parse::<toml::Table>().ok());
    let found = table.as_ref().and_then(|table| table.get("package")?.get("name")?.as_str());
    found == Some(name)
}

/// A source that Cargo fetched, from a registry or with git.
fn fetched(recorded: &str) -> Option<PathBuf> {
    let home = home("CARGO_HOME", ".cargo")?;
    if let Some((_, within)) = recorded.split_once("/git/checkouts/") {
        return Some(home.join("git/checkouts").join(relative_inside(within)?)).filter(|path| path.is_file());
    }
    let package = match recorded.split_once("/registry/src/") {
        Some((_, after)) => after.split_once('/')?.1,
        None => recorded.strip_prefix("/rust/deps/")?,
    };
    let package = relative_inside(package)?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?.flatten();
    registries.map(|registry| registry.path().join(package)).find(|path| path.is_file())
}

/// A source of the standard library, as rustup or a distribution installed it.
fn installed(recorded: &str) -> Option<PathBuf> {
    if let Some(after) = recorded.strip_prefix("/rustc/") {
        let (commit, within) = after.split_once('/')?;
        let library = stackglass_symbols::library_sources(commit)?;
        return Some(library.join(relative_inside(within.strip_prefix("library/")?)?))
            .filter(|path| path.is_file());
    }
    // The library was installed under another home.
    let (_, within) =
        recorded.split_once("/toolchains/").filter(|(_, within)| within.contains("/rustlib/src/"))?;
    let path = home("RUSTUP_HOME", ".rustup")?.join("toolchains").join(relative_inside(within)?);
    Some(path).filter(|path| path.is_file())
}

/// The path, if it cannot leave the folder that it is joined to.
fn relative_inside(within: &str) -> Option<&Path> {
    let path = Path::new(within);
    let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    inside.then_some(path)
}

fn home(variable: &str, folder: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(folder)))
}

fn read(path: &Path) -> Result<String, String> {
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err("too large for a source file".into());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert!(relative_inside("serde-1.0.2/src/de.rs").is_some());
        assert!(relative_inside("../../etc/passwd").is_none() && relative_inside("/etc/passwd").is_none());
    }

    #[test]
    fn packages_are_known_by_their_manifest() {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(is_package(ours, "stackglass-cli") && !is_package(ours, "cli"));
    }
}
