//! Names of glibc's functions.

/// A name without what glibc adds to it: underscores, `GI_`, a version, and what compilers add.
pub(crate) fn plain(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").map_or(name, |name| name.trim_start_matches('_'));
    name.split(['@', '.']).next().unwrap_or(name)
}
