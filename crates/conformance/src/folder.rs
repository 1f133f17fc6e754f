//! Finds cases: all JSON files that look like one, at any depth.

use crate::case::Case;
use crate::flame::FlameCase;
use crate::json_file::{not_json, read, read_deep, read_json};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Deeper folders are cyclic links.
const DEEPEST: usize = 40;

/// Why cases could not be run at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder or file could not be read or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// There are no cases.
    #[error("no cases under {}: a case is a JSON file with `name` and `kind`, or an entry of `cases`", .0.display())]
    NoCases(PathBuf),
    /// There are cases, but none of these kinds.
    #[error("no cases of kind {} under {}: there are {there}", wanted.join(", "), folder.display())]
    NoneOfKind {
        /// The folder.
        folder: PathBuf,
        /// The requested kinds.
        wanted: Vec<String>,
        /// Kinds and numbers of the existing cases.
        there: String,
    },
}

/// A case, ready to run.
pub(crate) struct Found {
    pub path: PathBuf,
    pub name: String,
    pub kind: String,
    pub what: What,
}

pub(crate) enum What {
    /// A case of the CPU reports, and its file as a value.
    Profile(Box<Case>, Value),
    /// A case of flame graphs.
    Flame(FlameCase),
    /// A `.jlprof` file and its index entry.
    Jlprof(Value),
    /// A case of a kind that cannot be run.
    Other,
    /// An unreadable file, and why.
    Broken(String),
}

/// All cases in a file, or under a folder sorted by path.
pub(crate) fn find(folder: &Path) -> Result<Vec<Found>, Error> {
    let mut files = Vec::new();
    walk(folder, 0, &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for path in files {
        cases_of(&path, &mut found);
    }
    Ok(found)
}

fn walk(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    for path in entries.into_iter().map(|entry| entry.path()) {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if is_json || (path.is_dir() && depth < DEEPEST && !path.ends_with("datasets")) {
            walk(&path, depth + 1, files)?;
        }
    }
    Ok(())
}

fn cases_of(path: &Path, found: &mut Vec<Found>) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = |name: &str, kind: &str, what| Found {
        path: path.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        what,
    };
    let head = read(path).map(|text| serde_json::from_slice::<Head>(&text));
    let head = match head.map(|head| head.map_err(|error| (error.is_data(), not_json(path, &error)))) {
        Ok(Ok(head)) => head,
        // JSON, but not a case.
        Ok(Err((true, _))) => return,
        Ok(Err((false, error))) | Err(error) => return found.push(file(&stem, "", What::Broken(error))),
    };
    let Some(kind) = head.kind.as_deref() else { return };
    match (kind, head.cases, head.name) {
        ("jlprof", Some(_), _) => match read_json::<Value>(path) {
            Ok(index) => found.extend(index["cases"].as_array().into_iter().flatten().map(|case| {
                let name = case["file"].as_str().unwrap_or(&stem);
                file(name, crate::jlprof::kind(path, case), What::Jlprof(case.clone()))
            })),
            Err(error) => found.push(file(&stem, kind, What::Broken(error))),
        },
        (kind, Some(cases), _) if crate::KINDS.contains(&kind) => match read_deep(path) {
            Ok(value) => {
                let value = Arc::new(value);
                found.extend((0..cases.len()).map(|index| {
                    let case = FlameCase { file: value.clone(), index, kind: kind.to_owned() };
                    file(case.id(), kind, What::Flame(case.clone()))
                }));
            }
            Err(error) => found.push(file(&stem, kind, What::Broken(error))),
        },
        (_, Some(cases), _) => found.extend(cases.iter().map(|_| file(&stem, kind, What::Other))),
        (kind, None, name) if crate::KINDS.contains(&kind) => {
            let name = name.unwrap_or(stem);
            let case = read_json::<Value>(path).and_then(|value| {
                let mut case = Case::deserialize(&value).map_err(|error| format!("not a case: {error}\n"))?;
                case.name.clone_from(&name);
                Ok(What::Profile(Box::new(case), value))
            });
            found.push(file(&name, kind, case.unwrap_or_else(What::Broken)));
        }
        (_, None, Some(name)) => found.push(file(&name, kind, What::Other)),
        (_, None, None) => {}
    }
}

/// The part of a file that says whether it has cases, and of which kind. The rest is skipped, since other files may be
/// nested deeper than the JSON reader allows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    kind: Option<String>,
    name: Option<String>,
    cases: Option<Vec<IgnoredAny>>,
}
