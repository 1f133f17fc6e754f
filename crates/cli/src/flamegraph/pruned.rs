//! `--prune FUNC@FILE`: files as people write them, and as debug information has them.

use crate::message;
use stackglass_profile::Frame;
use stackglass_report::Source;

type Pruned = (String, String);

/// Functions and files in full, as the graph wants them; says which are not there, or where they are. What matches
/// nothing stays as it was written.
pub(super) fn find(asked: &[Pruned], source: Source<'_>) -> Vec<Pruned> {
    let mut files: Vec<Pruned> = asked.to_vec();
    if asked.is_empty() {
        return files;
    }
    let frames = source.frames();
    for (func, file) in asked {
        let meant = frames.iter().filter(|frame| is_meant(frame, func, file, source));
        let before = files.len();
        files.extend(meant.map(|frame| (func.clone(), frame.file.to_string())));
        if files.len() == before {
            message::print(&match frames.iter().find(|frame| *frame.func == **func) {
                Some(frame) => format!("--prune: {func} is not in {file}, but in {}", frame.file),
                None => format!("--prune: there is no function {func}"),
            });
        }
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// A file is named in full, by the end of its path, or as reports show it.
fn is_meant(frame: &Frame, func: &str, file: &str, source: Source<'_>) -> bool {
    let ends =
        |path: &str| path.strip_suffix(file).is_some_and(|before| before.is_empty() || before.ends_with('/'));
    let shown = || {
        source.short_path(&frame.file).is_some_and(|short| {
            let prefix = short.prefix.trim_start_matches('@');
            file.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) == Some(&*short.rest)
        })
    };
    *frame.func == *func && (*frame.file == *file || !file.is_empty() && ends(&frame.file) || shown())
}
