//! Finding cases and running all of them.

use crate::case::Case;
use crate::{Failure, Mode, judge};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only cases of these kinds; `None`: all.
    pub kinds: Option<Vec<String>>,
    /// Writes our own goldens anew instead of comparing with them.
    pub bless: bool,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Cases found, each run in both modes.
    pub cases: usize,
    /// Cases that passed in both.
    pub passed: usize,
    /// One entry for each case and mode that did not pass.
    pub failures: Vec<Failure>,
}

impl Outcome {
    /// Cases that failed in either mode.
    pub fn failed(&self) -> usize {
        self.cases - self.passed
    }
}

/// Why cases could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file could not be read or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A file is not a case.
    #[error("{path} is not a case: {error}", path = path.display())]
    Json {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        error: serde_json::Error,
    },
    /// There was nothing to run.
    #[error("no cases under {}: they are JSON files in folders named `cases`", .0.display())]
    NoCases(PathBuf),
}

/// Runs all cases under a folder, sorted by path.
///
/// # Errors
/// When a file cannot be read, or there is no case.
pub fn run(folder: &Path, options: &Options) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let mut datasets: HashMap<PathBuf, Case> = HashMap::new();
    for path in cases_under(folder)? {
        let mut case = read(&path)?;
        if options.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&case.kind)) {
            continue;
        }
        let home = path.parent().and_then(Path::parent).unwrap_or(folder).to_owned();
        if let Some(name) = &case.dataset {
            let path = home.join("datasets").join(format!("{name}.json"));
            if !datasets.contains_key(&path) {
                datasets.insert(path.clone(), read(&path)?);
            }
            case.fill_from(datasets[&path].clone());
        }
        outcome.cases += 1;
        let before = outcome.failures.len();
        for mode in [Mode::Recorded, Mode::Ours] {
            let verdict = judge::judge(&case, mode, &home, options.bless);
            let verdict = verdict.map_err(|error| Error::Io { path: home.clone(), error })?;
            if let Err(text) = verdict {
                outcome.failures.push(Failure { case: case.name.clone(), mode, text });
            }
        }
        outcome.passed += usize::from(outcome.failures.len() == before);
    }
    if outcome.cases == 0 { Err(Error::NoCases(folder.to_owned())) } else { Ok(outcome) }
}

fn cases_under(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| Error::Io { path: folder.clone(), error })?;
        for path in entries.into_iter().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if folder.ends_with("cases")
                && path.extension().is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Case, Error> {
    let text = fs::read(path).map_err(|error| Error::Io { path: path.to_owned(), error })?;
    serde_json::from_slice(&text).map_err(|error| Error::Json { path: path.to_owned(), error })
}
