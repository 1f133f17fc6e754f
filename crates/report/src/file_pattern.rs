//! Patterns for source files: `search.rs`, `core/search.rs`, `@serde`, `src/*.rs`.

use stackglass_profile::ShortPath;

/// Matches files by whole parts of their recorded or short paths.
///
/// ```
/// use stackglass_report::FilePattern;
///
/// let pattern = FilePattern::new("core/sea*.rs");
/// assert!(pattern.matches("/home/me/ripgrep/crates/core/search.rs", None));
/// assert!(!pattern.matches("/home/me/hardcore/search.rs", None));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePattern {
    parts: Vec<String>,
    from_root: bool,
}

impl FilePattern {
    /// Parses a pattern of parts divided by `/`, in which `*` stands for any characters and `?` for one. The parts match
    /// consecutive parts anywhere in a path, or its beginning if the pattern begins with `/`.
    pub fn new(pattern: &str) -> FilePattern {
        let parts = pattern.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned);
        FilePattern { parts: parts.collect(), from_root: pattern.starts_with('/') }
    }

    /// Whether a file matches.
    pub fn matches(&self, file: &str, short: Option<&ShortPath>) -> bool {
        let short = || short.map(|short| format!("{}/{}", short.prefix, short.rest));
        self.in_path(file) || (!self.from_root && short().is_some_and(|short| self.in_path(&short)))
    }

    fn in_path(&self, path: &str) -> bool {
        if self.parts.is_empty() || (self.from_root && !path.starts_with('/')) {
            return false;
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let mut places = parts.windows(self.parts.len());
        let same = |place: &[&str]| self.parts.iter().zip(place).all(|(pattern, part)| glob(pattern, part));
        if self.from_root { places.next().is_some_and(same) } else { places.any(same) }
    }
}

/// Matches `*` and `?` in one part. Backtracks to the last star.
fn glob(pattern: &str, part: &str) -> bool {
    let (pattern, part): (Vec<char>, Vec<char>) = (pattern.chars().collect(), part.chars().collect());
    let (mut p, mut c, mut star) = (0, 0, None);
    while c < part.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, c));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == part[c] => {
                p += 1;
                c += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    c = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole() {
        let short = ShortPath { prefix: "@serde".into(), rest: "src/de.rs".into() };
        let is = |pattern: &str| FilePattern::new(pattern).matches("/h/serde-1.0/src/de.rs", Some(&short));
        for yes in [
            "de.rs",
            "src/de.rs",
            "@serde",
            "@serde/src/de.rs",
            "*.rs",
            "serde-*/src",
            "/h",
            "d?.rs",
            "./src",
            "src",
        ] {
            assert!(is(yes), "{yes}");
        }
        for no in ["e.rs", "serde", "/src", "de.r", "", "/", "@serde/de.rs", "/h/serde-1.0/src/de.rs/x"] {
            assert!(!is(no), "{no}");
        }
    }

    #[test]
    fn stars() {
        assert!(glob("*a*b", "xaab") && glob("*", "") && glob("a**", "a") && glob("ä?", "äö"));
        assert!(!glob("*a*b", "xaabc") && !glob("?", "") && !glob("", "a"));
    }
}
