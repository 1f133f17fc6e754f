//! Runs cases and counts results.

use crate::folder::{Error, Found, What, find};
use crate::goldens::Store;
use crate::{Failure, KINDS, Mode, jlprof, judge};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only cases of these kinds. With `None`, all cases, and those that cannot be run fail. `jlprof` means `jlprof-samples`
    /// and `jlprof-graph`.
    pub kinds: Option<Vec<String>>,
    /// Writes the goldens instead of comparing with them.
    pub bless: bool,
}

impl Options {
    fn wants(&self, kind: &str) -> bool {
        let is = |wanted: &String| {
            wanted == kind || kind.strip_prefix(&**wanted).is_some_and(|rest| rest.starts_with('-'))
        };
        // Unreadable files match any kind.
        kind.is_empty() || self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(is))
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Number of requested cases.
    pub cases: usize,
    /// Number of cases that passed, in both modes if there are two.
    pub passed: usize,
    /// Number of cases compared with a golden as well as with the record.
    pub as_users_see: usize,
    /// One entry for each case and mode that ran and did not pass.
    pub failures: Vec<Failure>,
    /// Cases by kind that cannot be run yet. They count as failed.
    pub not_implemented: BTreeMap<String, usize>,
    /// Cases by kind that were not requested. They do not count.
    pub left_out: BTreeMap<String, usize>,
}

impl Outcome {
    /// Cases that failed in either mode.
    pub fn failed(&self) -> usize {
        self.cases - self.passed
    }
}

/// Runs all cases in a file or under a folder, sorted by path.
///
/// # Errors
/// If the folder cannot be read, or if there are no cases. A single unreadable file is a failed case.
pub fn run(folder: &Path, options: &Options) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let mut store = Store::default();
    for found in find(folder)? {
        if options.wants(&found.kind) {
            outcome.cases += 1;
            judge(found, &mut store, options.bless, &mut outcome);
        } else {
            *outcome.left_out.entry(found.kind).or_default() += 1;
        }
    }
    match (outcome.cases, &options.kinds) {
        (0, Some(wanted)) if !outcome.left_out.is_empty() => Err(Error::NoneOfKind {
            folder: folder.to_owned(),
            wanted: wanted.clone(),
            there: listed(&outcome.left_out),
        }),
        (0, _) => Err(Error::NoCases(folder.to_owned())),
        _ => Ok(outcome),
    }
}

fn judge(found: Found, store: &mut Store, bless: bool, outcome: &mut Outcome) {
    let Found { path, name, kind, what } = found;
    let mut verdicts = Vec::new();
    match what {
        What::Other => {
            debug_assert!(!KINDS.contains(&&*kind));
            *outcome.not_implemented.entry(kind).or_default() += 1;
            return;
        }
        What::Flame(case) => {
            let own = store.own_flame(&path);
            verdicts.push((Mode::Recorded, guarded(|| case.judge(&path, Mode::Recorded, None, bless))));
            if let Some(goldens) = own.filter(|_| case.has_quirks()) {
                verdicts.push((Mode::Ours, guarded(|| case.judge(&path, Mode::Ours, Some(goldens), bless))));
                outcome.as_users_see += 1;
            }
        }
        What::Jlprof(case) => verdicts.push((Mode::Recorded, guarded(|| jlprof::judge(&path, &case)))),
        What::Broken(text) => verdicts.push((Mode::Recorded, Err(text))),
        What::Profile(mut case, value) => match store.complete(&mut case, &path) {
            Err(text) => verdicts.push((Mode::Recorded, Err(text))),
            Ok(()) => {
                let mut goldens = store.goldens(&case, &value, &path);
                let recorded = guarded(|| judge::judge(&case, Mode::Recorded, goldens.as_deref_mut(), bless));
                verdicts.push((Mode::Recorded, recorded));
                if let Some(goldens) = goldens {
                    let ours = guarded(|| judge::judge(&case, Mode::Ours, Some(goldens), bless));
                    verdicts.push((Mode::Ours, ours));
                    outcome.as_users_see += usize::from(kind == "print");
                }
            }
        },
    }
    outcome.passed += usize::from(verdicts.iter().all(|(_, verdict)| verdict.is_ok()));
    for (mode, verdict) in verdicts {
        if let Err(text) = verdict {
            let (case, kind, path) = (name.clone(), kind.clone(), path.clone());
            outcome.failures.push(Failure { case, kind, path, mode, text });
        }
    }
}

/// A panic fails only its case.
fn guarded(judge: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| Err("panicked\n".to_owned()))
}

/// `print (352), callers (24)`
fn listed(kinds: &BTreeMap<String, usize>) -> String {
    kinds.iter().map(|(kind, cases)| format!("{kind} ({cases})")).collect::<Vec<_>>().join(", ")
}
