//! `cargo xtask dist`: the command as one file that runs on any Linux for x86-64, whichever C library it has.
//!
//! The command is linked statically. The preload library in it cannot be: it uses the C library of the program. It needs
//! nothing that glibc 2.17 does not have.

use crate::run::{cargo, output, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A program that every system has, busy for some hundred milliseconds.
const BUSY: [&str; 3] = ["/bin/sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"];

/// So many samples of it are taken at least.
const FEWEST: u64 = 50;

/// Makes the file; with `try FOLDER …`, also uses it in these root file systems.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let roots = match arguments {
        [] => &[],
        ["try", roots @ ..] if !roots.is_empty() => roots,
        _ => bail!("usage: cargo xtask dist [try FOLDER …]"),
    };
    let file = make()?;
    println!("{} ({} KiB)", file.display(), fs::metadata(&file)?.len() >> 10);
    for root in roots {
        use_in(Path::new(root), &file).with_context(|| format!("in {root}"))?;
        println!("{root}: it records and prints");
    }
    Ok(true)
}

fn make() -> Result<PathBuf> {
    let built = target_folder().join("dist-build");
    let mut build = cargo(&["build", "--quiet", "--release", "-p", "stackglass", "--bin", "stackglass"]);
    build.args(["--target", TARGET, "--target-dir"]).arg(&built);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static").env("STACKGLASS_OLD_GLIBC", "1");
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "false").env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    if !succeeds(&mut build)? {
        bail!("the command does not build");
    }
    let release = built.join(TARGET).join("release");
    let program = release.join("stackglass");
    let needs =
        output(Command::new("readelf").args(["--wide", "--program-headers", "--dynamic"]).arg(&program))?;
    if let Some(line) = needs.lines().find(|line| line.contains("INTERP") || line.contains("(NEEDED)")) {
        bail!("the command is not static: {}", line.trim());
    }
    let library = newest_library(&release.join("build"))?;
    let versions = output(Command::new("readelf").args(["--wide", "--version-info"]).arg(&library))?;
    if let Some(line) = versions.lines().find(|line| needs_newer_glibc(line)) {
        bail!("the preload library needs a glibc newer than 2.17: {}", line.trim());
    }
    let folder = target_folder().join("dist");
    fs::create_dir_all(&folder)?;
    let version = output(Command::new(&program).arg("--version"))?;
    let version = version.split_whitespace().nth(1).context("the command says no version")?;
    let file = folder.join(format!("stackglass-{version}-x86_64-linux"));
    fs::copy(&program, &file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The library that the build script of the command made last.
fn newest_library(builds: &Path) -> Result<PathBuf> {
    let folders = fs::read_dir(builds)?.filter_map(|entry| Some(entry.ok()?.path()));
    let libraries = folders.map(|folder| folder.join("out/libstackglass.so"));
    let dated =
        libraries.filter_map(|library| Some((fs::metadata(&library).ok()?.modified().ok()?, library)));
    let (_, library) = dated.max().context("the build left no preload library")?;
    Ok(library)
}

/// Reads `0x0080:   Name: GLIBC_2.28  Flags: WEAK  Version: 11`.
fn needs_newer_glibc(line: &str) -> bool {
    let Some((_, named)) = line.split_once("Name: GLIBC_2.") else { return false };
    let minor = named.split(|c: char| !c.is_ascii_digit()).next().and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor > 17) && !named.contains("Flags: WEAK")
}

/// Records a program of another system there, from outside and from inside. Needs root.
fn use_in(root: &Path, file: &Path) -> Result<()> {
    /// A root file system is entered with proc(5) mounted.
    const ENTER: &str = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" /stackglass \"$@\"";
    let inside = root.join("stackglass");
    fs::copy(file, &inside)?;
    let within = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER]).arg(root).args(arguments).env("HOME", "/");
        output(&mut command)
    };
    // The library is for programs of glibc.
    let samplers = if root.join("lib64/ld-linux-x86-64.so.2").exists() { 3 } else { 2 };
    for sampler in &["perf", "ptrace", "preload"][..samplers] {
        let mut record = vec!["record", "--sampler", sampler, "-o", "/r.glass", "--"];
        record.extend(BUSY);
        within(&record).with_context(|| format!("--sampler {sampler}"))?;
        let report = within(&["print", "/r.glass", "--json"])?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let samples = report["samples"].as_u64().context("the report has no number of samples")?;
        if samples < FEWEST {
            bail!("--sampler {sampler} has taken {samples} samples only");
        }
    }
    fs::remove_file(root.join("r.glass"))?;
    fs::remove_file(inside)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::needs_newer_glibc;

    #[test]
    fn versions_after_2_17_are_refused_unless_weak() {
        let line = |name: &str, flags: &str| format!("  0x0080:   Name: {name}  Flags: {flags}  Version: 11");
        assert!(needs_newer_glibc(&line("GLIBC_2.34", "none")));
        assert!(!needs_newer_glibc(&line("GLIBC_2.28", "WEAK")));
        assert!(!needs_newer_glibc(&line("GLIBC_2.2.5", "none")));
        assert!(!needs_newer_glibc(&line("GLIBC_2.17", "none")));
    }
}
