//! Documents name files: each path and each link must exist, so that a rename cannot leave them behind.

use super::Tally;
use crate::run::root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Documents at fixed places; those in `docs` and `docs/guide`, and of each crate, are found.
const DOCUMENTS: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "bench/README.md",
    "fuzz/README.md",
    "conformance/profile/README.md",
    "conformance/flamegraphs/README.md",
    "crates/files/FORMAT.md",
];

/// Endings that make a word in backticks a path.
const ENDINGS: [&str; 8] = [".rs", ".js", ".c", ".md", ".toml", ".json", ".py", "/"];

/// One check per document.
pub fn check() -> Result<Tally> {
    let mut documents: Vec<PathBuf> = DOCUMENTS.iter().map(|name| root().join(name)).collect();
    for folder in ["docs", "docs/guide"] {
        for entry in std::fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    for entry in std::fs::read_dir(root().join("crates"))? {
        let path = entry?.path().join("README.md");
        if path.exists() {
            documents.push(path);
        }
    }
    let mut tally = Tally::default();
    for document in &documents {
        let text = std::fs::read_to_string(document)
            .with_context(|| format!("cannot read {}", document.display()))?;
        let folder = document.parent().unwrap_or(root());
        let mut passed = true;
        for Mention { line, path, kind } in mentions(&text) {
            let exists = match kind {
                Kind::Link => folder.join(&path).exists(),
                // Paths start at the root, or in `crates`.
                Kind::Path => root().join(&path).exists() || root().join("crates").join(&path).exists(),
            };
            if !exists {
                let name = document.strip_prefix(root()).unwrap_or(document).display();
                eprintln!("{name}:{line}: there is no {path}");
                passed = false;
            }
        }
        let one = Tally::one(passed);
        tally = Tally { passed: tally.passed + one.passed, failed: tally.failed + one.failed };
    }
    Ok(tally)
}

#[derive(PartialEq, Debug)]
enum Kind {
    /// The target of a link, relative to the document.
    Link,
    /// A word in backticks.
    Path,
}

/// A file that a document mentions.
#[derive(PartialEq, Debug)]
struct Mention {
    line: usize,
    path: String,
    kind: Kind,
}

/// Files mentioned outside of code blocks.
fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for target in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") {
                found.push(Mention { line, path: path.to_owned(), kind: Kind::Link });
            }
        }
        for word in content.split('`').skip(1).step_by(2).filter(|word| is_path(word)) {
            found.push(Mention { line, path: word.to_owned(), kind: Kind::Path });
        }
    }
    found
}

/// Whether a word in backticks is a path in this repository: with a folder, and without placeholders.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
    let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Names of documents are in capitals, as in `bench/RESULTS.md`.
    let stem = name.split('.').next().unwrap_or_default();
    let folders = word.strip_suffix(name).unwrap_or(word);
    let is_document = name.ends_with(".md") && stem.chars().all(|c| c.is_ascii_uppercase()) && stem != "NAME";
    ENDINGS.iter().any(|ending| word.ends_with(ending))
        && word.trim_end_matches('/').contains('/')
        && !word.starts_with(['/', '.', '-'])
        && (folders.chars().all(plain) && (is_document || name.chars().all(plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_links_are_found_outside_of_code() {
        let text = "See `host/src/slot.rs`, `a/b/`, [x](docs/X.md#y), <https://a.b/c.rs>, `/tmp/a.c`, `x.rs`\n\
                    ```\n`no/such.rs`\n```\n`tests/NAME.rs` `bench/RESULTS.md` `crates/{a,b}/x.rs` `src/*.rs`";
        let found: Vec<(usize, String)> = mentions(text).into_iter().map(|m| (m.line, m.path)).collect();
        let expected = [(1, "docs/X.md"), (1, "host/src/slot.rs"), (1, "a/b/"), (5, "bench/RESULTS.md")];
        assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
    }
}
