//! The module path of a Rust source file, for functions of which only the last part of the name is recorded: with
//! `debug = "line-tables-only"`, an inlined function is just `next`. The file gives the rest:
//! `…/library/core/src/iter/adapters/map.rs` is `core::iter::adapters::map`.

use crate::source;

/// The source of a function without a path of its own.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its source file.
    pub file: Option<&'a str>,
    /// Name of its compilation unit (`src/main.rs/@/app.0123-cgu.0`).
    pub unit: Option<&'a str>,
    /// Working directory of the compiler.
    pub folder: Option<&'a str>,
}

/// Crate and modules of the file; empty if unknown.
pub fn from_origin(origin: Origin<'_>) -> Vec<String> {
    let Some(file) = origin.file else {
        return origin.unit.and_then(crate_of_unit).map(str::to_owned).into_iter().collect();
    };
    let file = source::normalize(file);
    // The unit gives the name and the root file of its own crate. Other crates follow from the folders of Cargo and rustc.
    if let Some((root, krate)) =
        origin.unit.and_then(|unit| Some((unit.rsplit_once("/@/")?.0, crate_of_unit(unit)?)))
    {
        let root = source::normalize(&source::join(origin.folder.unwrap_or_default(), root));
        if let Some((folder, _)) = root.rsplit_once('/')
            && let Some(within) = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'))
        {
            let within = if file == root { "lib.rs" } else { within };
            return with_crate(krate, within);
        }
    }
    match source::place_in_crate(&file) {
        Some((package, within)) => {
            let within = within.strip_prefix("src/").unwrap_or(within);
            with_crate(&package.replace('-', "_"), within)
        }
        None => Vec::new(),
    }
}

/// The crate's name, and the modules of a path such as `dir/mod.rs`.
fn with_crate(krate: &str, within: &str) -> Vec<String> {
    let mut path = vec![krate.to_owned()];
    path.extend(within.strip_suffix(".rs").unwrap_or(within).split('/').map(str::to_owned));
    if path.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

/// The crate of a unit that rustc named: `src/main.rs/@/app.0123-cgu.0`. In incremental builds it is only a number.
pub fn crate_of_unit(unit: &str) -> Option<&str> {
    let (_, name) = unit.rsplit_once("/@/")?;
    name.split_once('.').map(|(name, _)| name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_give_the_module() {
        let unit = Some("crates/core/main.rs/@/rg.8a7-cgu.0");
        for (file, expected) in [
            ("/home/a/ripgrep/crates/core/main.rs", "rg"),
            ("/home/a/ripgrep/crates/core/flags/mod.rs", "rg::flags"),
            ("/home/a/ripgrep/crates/core/search.rs", "rg::search"),
            ("/rustc/59807616e/library/core/src/iter/adapters/map.rs", "core::iter::adapters::map"),
            ("/rustc/59807616e/library/std/src/sys/pal/unix/mod.rs", "std::sys::pal::unix"),
            ("/rust/deps/hashbrown-0.15.2/src/raw/mod.rs", "hashbrown::raw"),
            (
                "/h/.cargo/registry/src/index.crates.io-1949cf8/regex-automata-0.4.9/src/dfa/dense.rs",
                "regex_automata::dfa::dense",
            ),
            ("/h/.cargo/registry/src/index.crates.io-1949cf8/x-1.0.0-rc.1/src/lib.rs", "x"),
            ("/h/.cargo/git/checkouts/serde-7cff/1a2b3c/serde_core/src/de/impls.rs", "serde_core::de::impls"),
            ("/elsewhere/own-tool/src/parse/mod.rs", "own_tool::parse"),
            ("/elsewhere/x.rs", ""),
        ] {
            let origin = Origin { file: Some(file), unit, folder: Some("/home/a/ripgrep") };
            assert_eq!(from_origin(origin).join("::"), expected, "{file}");
        }
    }

    #[test]
    fn incremental_builds_name_units_by_a_number() {
        let unit = Some("src/main.rs/@/73hqlggvmjn9f8dg0ucbsj399");
        let origin =
            Origin { file: Some("/home/a/own-tool/src/parse.rs"), unit, folder: Some("/home/a/own-tool") };
        assert_eq!(from_origin(origin).join("::"), "own_tool::parse");
    }
}
