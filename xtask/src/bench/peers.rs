//! Other profilers, and ripgrep with full debug information as a program to profile.
//!
//! Each is searched in the peers' folder and on the path. Missing ones are reported.

use crate::run::{cargo, output, succeeds};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The peers that exist on this machine.
pub struct Peers {
    /// samply.
    pub samply: Option<PathBuf>,
    /// perf.
    pub perf: Option<PathBuf>,
    /// ripgrep built with full debug information.
    pub ripgrep: Option<PathBuf>,
    /// heaptrack.
    pub heaptrack: Option<PathBuf>,
    /// valgrind.
    pub valgrind: Option<PathBuf>,
    /// The workloads with dhat-rs in them.
    pub dhat: Option<PathBuf>,
    /// The workloads with jemalloc and its profiler.
    pub jemalloc: Option<PathBuf>,
    /// jaq with the system's allocator and full debug information: a program to profile.
    pub jaq: Option<PathBuf>,
    /// How to get each missing one.
    pub remarks: Vec<String>,
}

impl Peers {
    /// Searches all of them.
    pub fn find(folder: &Path) -> Peers {
        let mut remarks = Vec::new();
        let mut look = |name: &str, places: Vec<PathBuf>, remedy: &str| {
            let found = places.into_iter().find(|place| place.is_file());
            if found.is_none() {
                remarks.push(format!("{name} is missing: {remedy}"));
            }
            found
        };
        let on_path = |program: &str| -> Vec<PathBuf> {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).map(|folder| folder.join(program)).collect()
        };
        let own = |path: &str| vec![folder.join(path)];
        let install = "`cargo xtask bench install`";
        let samply = look("samply", [own("samply-full/bin/samply"), on_path("samply")].concat(), install);
        let perf = look("perf", on_path("perf"), "`apt-get install linux-perf`");
        let ripgrep = look("ripgrep with debug info", own("rg-full/bin/rg"), install);
        let heaptrack = look("heaptrack", on_path("heaptrack"), "`apt-get install heaptrack`");
        let valgrind = look("valgrind", on_path("valgrind"), "`apt-get install valgrind`");
        let dhat = look("dhat-rs", own("dhat/release/workloads"), install);
        let jemalloc = look("jemalloc", own("jemalloc/release/workloads"), install);
        let jaq = look("jaq", own("jaq/bin/jaq"), install);
        Peers { samply, perf, ripgrep, heaptrack, valgrind, dhat, jemalloc, jaq, remarks }
    }

    /// The words of `samply record` at 1 kHz into `file`, to which the program and its arguments are added.
    ///
    /// samply refuses to run where perf_event_paranoid is 2 and there is no hardware counter, even as root. In a private
    /// mount namespace the file contains 1; the kernel's setting stays.
    pub fn samply_record(&self, file: &Path) -> Option<Vec<String>> {
        let samply = self.samply.as_ref()?.display().to_string();
        let mut words = Vec::new();
        let setting = "/proc/sys/kernel/perf_event_paranoid";
        let level: i32 = std::fs::read_to_string(setting).ok()?.trim().parse().ok()?;
        if level > 1 {
            let low = file.with_extension("paranoid");
            std::fs::write(&low, "1\n").ok()?;
            let script = format!("mount --bind {} {setting} && exec \"$@\"", low.display());
            words.extend(["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned));
        }
        words.extend(
            [&samply, "record", "-r", "1000", "--save-only", "--unstable-presymbolicate"].map(str::to_owned),
        );
        words.extend(["-o".to_owned(), file.display().to_string(), "--".to_owned()]);
        Some(words)
    }

    /// `perf record` with copies of the stack (`dwarf`) at 1 kHz; `event` is `cpu-clock` or `cpu-clock:u`
    /// (user space only).
    pub fn perf_record(&self, event: &str, file: &Path) -> Option<Vec<String>> {
        let perf = self.perf.as_ref()?.display().to_string();
        let flags = ["record", "-q", "-e", event, "-F", "999", "--call-graph", "dwarf", "-o"];
        let mut words = vec![perf];
        words.extend(flags.map(str::to_owned));
        words.extend([file.display().to_string(), "--".to_owned()]);
        Some(words)
    }
}

/// A package that Cargo installs, with full debug information.
struct Package {
    name: &'static str,
    /// Its folder in that of the peers.
    place: &'static str,
    /// Further arguments.
    flags: &'static [&'static str],
}

const PACKAGES: [Package; 3] = [
    Package { name: "samply", place: "samply-full", flags: &[] },
    Package { name: "ripgrep", place: "rg-full", flags: &[] },
    // By default it has an allocator of its own.
    Package { name: "jaq", place: "jaq", flags: &["--no-default-features"] },
];

/// Features of the workloads, each with a profiler inside.
const INSIDE: [&str; 2] = ["dhat", "jemalloc"];

/// Installs the named peers that Cargo can build, or all: [`PACKAGES`], and the workloads with each of [`INSIDE`].
pub fn install(folder: &Path, named: &[&str]) -> Result<bool> {
    let known = |name: &&str| INSIDE.contains(name) || PACKAGES.iter().any(|package| package.name == *name);
    if let Some(unknown) = named.iter().find(|name| !known(name)) {
        let packages = PACKAGES.map(|package| package.name);
        bail!("Cargo does not install {unknown:?}, but {}", [&packages[..], &INSIDE].concat().join(", "));
    }
    let wanted = |name: &str| named.is_empty() || named.contains(&name);
    let mut good = true;
    for package in PACKAGES.iter().filter(|package| wanted(package.name)) {
        let mut install = cargo(&["install", "--locked", package.name, "--root"]);
        install.arg(folder.join(package.place)).args(package.flags).env_remove("CARGO_TARGET_DIR");
        install.env("CARGO_PROFILE_RELEASE_DEBUG", "2");
        good &= succeeds(&mut install)?;
    }
    for feature in INSIDE.into_iter().filter(|feature| wanted(feature)) {
        let flags = ["build", "--release", "-p", "workloads", "--features", feature, "--target-dir"];
        good &= succeeds(cargo(&flags).arg(folder.join(feature)))?;
    }
    Ok(good)
}

/// First line of a peer's `--version`, or else Cargo's record of its installation.
pub fn version(program: &Path) -> String {
    let report = output(Command::new(program).arg("--version")).unwrap_or_default();
    report
        .lines()
        .next()
        .map(str::to_owned)
        .or_else(|| installed(program))
        .unwrap_or("unknown version".into())
}

/// Package and version of a program in `ROOT/bin`.
fn installed(program: &Path) -> Option<String> {
    let notes = std::fs::read_to_string(program.parent()?.parent()?.join(".crates.toml")).ok()?;
    let name = format!("{:?}", program.file_name()?.to_str()?);
    // Below each package, or beside it, its programs.
    let package = notes[..notes.find(&name)?].lines().rev().find_map(|line| line.strip_prefix('"'))?;
    Some(package.split(" (").next()?.to_owned())
}
