//! `--prune FUNC@FILE`: finds the files in debug information that the flag names.

use crate::message;
use stackglass_profile::Frame;
use stackglass_report::Source;

/// A function to leave out, with everything it calls.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PruneRule {
    pub(super) func: String,
    pub(super) file: String,
}

/// Parses `FUNC@FILE`.
pub(super) fn func_at_file(text: &str) -> Result<PruneRule, String> {
    match text.rsplit_once('@') {
        // Reports print files of known folders as @folder/file.
        Some((func, file)) if !func.trim_end_matches('@').is_empty() => {
            Ok(PruneRule { func: func.strip_suffix('@').unwrap_or(func).to_owned(), file: file.to_owned() })
        }
        _ => Err("expected FUNCTION@FILE: sort!@sort.jl, rg::walk@src/walk.rs".into()),
    }
}

/// The rules with full file names. Rules that match nothing are reported and left out.
pub(super) fn find(rules: &[PruneRule], source: Source<'_>) -> Vec<PruneRule> {
    let mut found = Vec::new();
    if rules.is_empty() {
        return found;
    }
    let frames = source.frames();
    for rule in rules {
        let PruneRule { func, file } = rule;
        let matching = frames.iter().filter(|frame| matches(frame, rule, source));
        let before = found.len();
        found.extend(
            matching.map(|frame| PruneRule { func: frame.func.to_string(), file: frame.file.to_string() }),
        );
        if found.len() == before {
            message::print(&match frames.iter().find(|frame| *frame.func == **func) {
                Some(frame) => format!("--prune: {func} is not in {file}, but in {}", frame.file),
                None => format!("--prune: there is no function {func}"),
            });
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether the rule names the file of the frame: in full, by the end of its path, or as reports print it.
fn matches(frame: &Frame, rule: &PruneRule, source: Source<'_>) -> bool {
    let PruneRule { func, file } = rule;
    let ends = |path: &str| {
        path.strip_suffix(&**file).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let is_short_path = || {
        source.short_path(&frame.file).is_some_and(|short| {
            let prefix = short.prefix.trim_start_matches('@');
            file.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) == Some(&*short.rest)
        })
    };
    let is_func =
        frame.func.strip_suffix(&**func).is_some_and(|before| before.is_empty() || before.ends_with("::"));
    is_func
        && !func.is_empty()
        && (*frame.file == *file || !file.is_empty() && ends(&frame.file) || is_short_path())
}
