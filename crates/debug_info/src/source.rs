//! Source paths: normalised, mapped to this machine, and in the short form `@crate/src/file.rs`.

use foldhash::HashMap;
use stackglass_profile::ShortPath;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path joined with its folder, if it is relative.
pub fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

/// The path without `.`, `..` and double slashes, without access to the file system.
pub fn normalize(path: &str) -> String {
    if !(path.contains("//") || path.contains("/.") || path.starts_with('.')) {
        return path.to_owned();
    }
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

/// The package of a file and the path in it, by the folders of Cargo and rustc: the registry, git checkouts, the standard
/// library and its dependencies, `NAME/src`.
pub fn place_in_crate(file: &str) -> Option<(&str, &str)> {
    if let Some((_, after)) = file.split_once("/registry/src/") {
        let (_index, after) = after.split_once('/')?;
        let (package, within) = after.split_once('/')?;
        return Some((without_version(package), within));
    }
    if let Some(after) = file.strip_prefix("/rust/deps/") {
        let (package, within) = after.split_once('/')?;
        return Some((without_version(package), within));
    }
    // Elsewhere, the package folder contains `src`. In the standard library, the first `src` counts
    // (`library/std/src/…`), in all others the last (`/usr/src/tool/src/…`).
    let at = if file.starts_with("/rustc/") { file.find("/src/") } else { file.rfind("/src/") }?;
    let (_, package) = file[..at].rsplit_once('/').unwrap_or(("", &file[..at]));
    // A checkout with one package has its commit as folder.
    let package = match file[..at].split_once("/git/checkouts/") {
        Some((_, checkout)) if checkout.split('/').count() == 2 => checkout
            .split('/')
            .next()
            .and_then(|name| name.rsplit_once('-'))
            .map_or(package, |(name, _)| name),
        _ => package,
    };
    (!package.is_empty()).then_some((package, &file[at + 1..]))
}

/// `serde-1.0.2` to `serde`.
fn without_version(package: &str) -> &str {
    let at = package.match_indices('-').find(|(at, _)| {
        let major = package[at + 1..].split_once('.').map_or("", |(major, _)| major);
        !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_digit())
    });
    at.map_or(package, |(at, _)| &package[..at])
}

/// Maps paths of debug information to paths of this machine and their short forms. It reads each folder at most once.
#[derive(Default)]
pub struct Sources {
    packages: HashMap<PathBuf, Option<Package>>,
    libraries: HashMap<String, Option<PathBuf>>,
    given_library: Option<PathBuf>,
}

/// A folder with a `Cargo.toml` that has a name.
#[derive(Clone)]
struct Package {
    folder: PathBuf,
    name: Arc<str>,
}

impl Sources {
    /// `library` is the folder of the standard library's sources, if the user gives it.
    pub fn new(library: Option<PathBuf>) -> Sources {
        Sources { given_library: library, ..Sources::default() }
    }

    /// The path on this machine for a normalised recorded path, and its short form.
    pub fn locate(&mut self, recorded: &str) -> (Arc<str>, Option<ShortPath>) {
        let short = self.short(recorded);
        let shown = self.installed(recorded).unwrap_or_else(|| recorded.to_owned());
        (Arc::from(shown), short)
    }

    fn short(&mut self, file: &str) -> Option<ShortPath> {
        let ours =
            file.contains("/registry/src/") || file.starts_with("/rust/deps/") || file.starts_with("/rustc/");
        let (name, rest): (Arc<str>, &str) = if ours {
            let (package, rest) = place_in_crate(file)?;
            (Arc::from(package), rest)
        } else {
            if !file.starts_with('/') {
                return None;
            }
            let package = self.package(Path::new(file).parent()?)?;
            let folder = package.folder.to_str()?;
            (package.name, file.strip_prefix(folder)?.trim_start_matches('/'))
        };
        Some(ShortPath { prefix: Arc::from(format!("@{name}")), rest: Arc::from(rest) })
    }

    /// The innermost package that contains a folder.
    fn package(&mut self, folder: &Path) -> Option<Package> {
        let mut asked = Vec::new();
        let mut found = None;
        for folder in folder.ancestors() {
            if let Some(known) = self.packages.get(folder) {
                found = known.clone();
                break;
            }
            asked.push(folder.to_owned());
            if let Some(name) = package_name(&folder.join("Cargo.toml")) {
                found = Some(Package { folder: folder.to_owned(), name: Arc::from(name) });
                break;
            }
        }
        for folder in asked {
            self.packages.insert(folder, found.clone());
        }
        found
    }

    /// The installed file for `/rustc/HASH/library/std/src/…`, if it exists.
    fn installed(&mut self, file: &str) -> Option<String> {
        let (commit, within) = file.strip_prefix("/rustc/")?.split_once('/')?;
        let within = within.strip_prefix("library/")?;
        if !self.libraries.contains_key(commit) {
            let library = self.given_library.clone().or_else(|| library_sources(commit));
            self.libraries.insert(commit.to_owned(), library);
        }
        let path = self.libraries.get(commit)?.as_ref()?.join(within);
        path.is_file().then(|| path.to_string_lossy().into_owned())
    }
}

/// The `name` of the `[package]` in a `Cargo.toml`.
fn package_name(manifest: &Path) -> Option<String> {
    const LONGEST: u64 = 1 << 20;
    if !std::fs::metadata(manifest).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(manifest).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    let mut in_package = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_package = line.starts_with("[package]");
        } else if in_package
            && let Some(value) =
                line.strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='))
        {
            let name = value.trim_start().trim_start_matches(['"', '\'']);
            let name = name.split(['"', '\'']).next().unwrap_or_default();
            return (!name.is_empty()).then(|| name.to_owned());
        }
    }
    None
}

/// The folder of the standard library's sources (`…/lib/rustlib/src/rust/library`) in the installed toolchain whose compiler
/// was built from `commit`. It replaces `/rustc/COMMIT/library`.
pub fn library_sources(commit: &str) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let rustup =
        std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".rustup")))?;
    let toolchains = std::fs::read_dir(rustup.join("toolchains")).into_iter().flatten().flatten();
    let roots =
        toolchains.map(|entry| entry.path()).chain([PathBuf::from("/usr"), PathBuf::from("/usr/local")]);
    roots.map(|root| root.join("lib/rustlib")).find_map(|rustlib| {
        let library = rustlib.join("src/rust/library");
        // Rustup's manifest names the commit each toolchain was built from.
        let manifest = std::fs::read_to_string(rustlib.join("multirust-channel-manifest.toml")).ok()?;
        let same = commit.len() >= 8 && manifest.contains(commit);
        (same && library.is_dir()).then_some(library)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (path, expected) in [
            ("/a/b/c.rs", "/a/b/c.rs"),
            ("/a/./b//c.rs", "/a/b/c.rs"),
            ("/a/x/../b/c.rs", "/a/b/c.rs"),
            ("/../a.c", "/a.c"),
            ("./a.c", "a.c"),
            ("../a.c", "../a.c"),
            ("../../x/../a.c", "../../a.c"),
            ("a/.hidden/b.c", "a/.hidden/b.c"),
        ] {
            assert_eq!(normalize(path), expected, "{path}");
        }
    }

    #[test]
    fn short_paths_by_origin() {
        let mut sources = Sources::default();
        for (file, expected) in [
            ("/rustc/59807616e/library/std/src/rt.rs", Some(("@std", "src/rt.rs"))),
            ("/rustc/59807616e/library/core/src/num/mod.rs", Some(("@core", "src/num/mod.rs"))),
            ("/rustc/59807616e/library/alloc/src/vec/mod.rs", Some(("@alloc", "src/vec/mod.rs"))),
            ("/rust/deps/hashbrown-0.15.2/src/raw/mod.rs", Some(("@hashbrown", "src/raw/mod.rs"))),
            (
                "/h/.cargo/registry/src/index.crates.io-1949/serde-1.0.2/src/de.rs",
                Some(("@serde", "src/de.rs")),
            ),
            ("/h/.cargo/registry/src/i-1/utf-8-0.7.6/src/lib.rs", Some(("@utf-8", "src/lib.rs"))),
            ("/nowhere/at/all.c", None),
            ("relative.c", None),
        ] {
            let short = sources.locate(file).1;
            let short = short.as_ref().map(|short| (&*short.prefix, &*short.rest));
            assert_eq!(short, expected, "{file}");
        }
    }

    #[test]
    fn the_nearest_package_gives_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("inner/src")).unwrap();
        std::fs::write(root.join("Cargo.toml"), "[workspace]\nname = \"no\"\n[package]\nname = 'outer'")
            .unwrap();
        std::fs::write(root.join("inner/Cargo.toml"), "[workspace]\nmembers = []").unwrap();
        let file = root.join("inner/src/x.rs");
        let short = Sources::default().locate(file.to_str().unwrap()).1.unwrap();
        assert_eq!((&*short.prefix, &*short.rest), ("@outer", "inner/src/x.rs"));
        std::fs::write(root.join("inner/Cargo.toml"), "[package]\nedition = \"2024\"\nname=\"in\"").unwrap();
        let short = Sources::default().locate(file.to_str().unwrap()).1.unwrap();
        assert_eq!((&*short.prefix, &*short.rest), ("@in", "src/x.rs"));
    }

    #[test]
    fn remapped_sources_are_found_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("library");
        std::fs::create_dir_all(library.join("std/src")).unwrap();
        std::fs::write(library.join("std/src/rt.rs"), "").unwrap();
        let mut sources = Sources::new(Some(library.clone()));
        let (file, short) = sources.locate("/rustc/0123456789/library/std/src/rt.rs");
        assert_eq!(Path::new(&*file), library.join("std/src/rt.rs"));
        assert_eq!(&*short.unwrap().prefix, "@std");
        let (file, _) = sources.locate("/rustc/0123456789/library/std/src/none.rs");
        assert_eq!(&*file, "/rustc/0123456789/library/std/src/none.rs");
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_survived(path in "[a-z./-]{0,40}|/registry/src/[a-z/-]{0,9}|.{0,20}") {
            let normal = normalize(&path);
            proptest::prop_assert_eq!(&normalize(&normal), &normal);
            let _ = place_in_crate(&path);
        }
    }
}
