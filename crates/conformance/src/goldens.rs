//! Reviewed goldens of what users see, beside the cases or in the project's copy.

use crate::case::Case;
use crate::json_file::read_json;
use crate::own_folder;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Goldens for a folder of cases.
pub(crate) struct Goldens {
    /// Contains the folders `ours` and `corrected`.
    home: PathBuf,
    /// Cases in which the reference warns and users rightly get no warning.
    unwarned: BTreeSet<String>,
}

/// List of [`Goldens::unwarned`], in folder `ours`.
const UNWARNED: &str = "no-warning.txt";

impl Goldens {
    fn open(home: PathBuf) -> Goldens {
        let list = fs::read_to_string(home.join("ours").join(UNWARNED)).unwrap_or_default();
        Goldens { home, unwarned: list.lines().map(str::to_owned).collect() }
    }

    /// The golden of a case, if it differs from the record.
    pub(crate) fn text(&self, case: &str) -> io::Result<Option<String>> {
        let path = self.path_of(case);
        if path.exists() { fs::read_to_string(path).map(Some) } else { Ok(None) }
    }

    /// Whether users get no warning although the reference warns.
    pub(crate) fn is_unwarned(&self, case: &str) -> bool {
        self.unwarned.contains(case)
    }

    /// The correct result for a case with a defect in the record.
    pub(crate) fn corrected(&self, file: &str) -> io::Result<Vec<u8>> {
        let path = self.home.join("corrected").join(file);
        fs::read(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// Accepts the current text as golden; `None` if it equals the record.
    pub(crate) fn bless(&mut self, case: &str, text: Option<&str>, is_unwarned: bool) -> io::Result<()> {
        let path = self.path_of(case);
        fs::create_dir_all(self.home.join("ours"))?;
        match text {
            Some(text) => fs::write(path, text)?,
            None if path.exists() => fs::remove_file(path)?,
            None => {}
        }
        let changed = match is_unwarned {
            true => self.unwarned.insert(case.to_owned()),
            false => self.unwarned.remove(case),
        };
        if changed {
            let list: String = self.unwarned.iter().map(|case| format!("{case}\n")).collect();
            fs::write(self.home.join("ours").join(UNWARNED), list)?;
        }
        Ok(())
    }

    fn path_of(&self, case: &str) -> PathBuf {
        self.home.join("ours").join(format!("{case}.txt"))
    }
}

/// Datasets and goldens, each read once.
#[derive(Default)]
pub(crate) struct Store {
    datasets: HashMap<PathBuf, Value>,
    goldens: HashMap<PathBuf, Goldens>,
}

impl Store {
    /// Adds fields to a case from its dataset.
    pub(crate) fn complete(&mut self, case: &mut Case, path: &Path) -> Result<(), String> {
        if let Some(name) = case.dataset.clone() {
            let dataset = self.dataset(path, &name)?;
            let dataset: Case = serde_json::from_value(dataset.clone())
                .map_err(|error| format!("dataset {name} is not one: {error}\n"))?;
            case.fill_from(dataset);
        }
        Ok(())
    }

    /// The dataset of this name, in a folder `datasets` beside the case or further up.
    fn dataset(&mut self, case: &Path, name: &str) -> Result<&Value, String> {
        let file = format!("{name}.json");
        let near = case.ancestors().skip(1).take(3).map(|folder| folder.join("datasets").join(&file));
        let own = own_folder().join("profile/datasets").join(&file);
        let path = near.into_iter().find(|path| path.exists()).unwrap_or(own);
        if !self.datasets.contains_key(&path) {
            self.datasets.insert(path.clone(), read_json(&path)?);
        }
        Ok(&self.datasets[&path])
    }

    /// The goldens for a case: those beside it, or the project's if the project has the same case. Other cases have none,
    /// since nobody reviewed what users see there.
    pub(crate) fn goldens(&mut self, case: &Case, value: &Value, path: &Path) -> Option<&mut Goldens> {
        let beside = path.parent().and_then(Path::parent).filter(|home| home.join("ours").is_dir());
        let home = match beside {
            Some(home) => home.to_owned(),
            None if self.is_own(case, value, path) => own_folder().join("profile"),
            None => return None,
        };
        Some(self.goldens.entry(home.clone()).or_insert_with(|| Goldens::open(home)))
    }

    /// The goldens for a case of flame graphs: the project's, for its own or the same cases.
    pub(crate) fn own_flame(&mut self, path: &Path) -> Option<&mut Goldens> {
        let home = own_folder().join("flamegraphs");
        let own = home.join(path.parent()?.file_name()?).join(path.file_name()?);
        let same =
            own == path || matches!((fs::read(&own), fs::read(path)), (Ok(own), Ok(given)) if own == given);
        same.then(|| self.goldens.entry(home.clone()).or_insert_with(|| Goldens::open(home)))
    }

    fn is_own(&mut self, case: &Case, value: &Value, path: &Path) -> bool {
        let own = own_folder().join("profile/cases").join(format!("{}.json", case.name));
        if !own.exists() || read_json(&own).as_ref() != Ok(value) {
            return false;
        }
        let Some(name) = &case.dataset else { return true };
        let theirs = self.dataset(path, name).cloned();
        matches!((theirs, self.dataset(&own, name)), (Ok(theirs), Ok(own)) if theirs == *own)
    }
}
