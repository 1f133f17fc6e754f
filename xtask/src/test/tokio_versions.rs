//! Await stacks with other versions of tokio: the program `awaits`, built with each of them.
//!
//! Private fields of tokio are found by name, so a renamed one must show here. Its dependencies have no debug information, as in
//! many release builds.

use super::suites::summary;
use super::{Extent, Tally};
use crate::run::{cargo, root, shown_and_returned, succeeds, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

/// Versions of the last year, and the oldest one with long-term support. A quick run takes the first.
const VERSIONS: &[&str] = &["1.48.0", "1.43.4", "1.47.5", "1.49.0", "1.50.0", "1.51.6", "1.52.4", "1.53.3"];

/// Those that look at tasks of all shapes.
const TESTS: &str = "test(/^await_stacks::.*(all_shapes|local_set|deadlocks)/)";

/// The tests of all shapes with each version.
pub fn run(extent: Extent) -> Result<Tally> {
    let versions = if extent == Extent::Full { VERSIONS } else { &VERSIONS[..1] };
    let tools = Tools::with_tests()?;
    let mut tally = Tally::default();
    for version in versions {
        eprintln!("tokio {version}");
        let program = build(version).with_context(|| format!("with tokio {version}"))?;
        let mut nextest = cargo(&["nextest", "run", "-p", "whole-programs", "--test", "whole"]);
        nextest.args(["--status-level", "fail", "--hide-progress-bar", "-E", TESTS]);
        nextest.env("AWAITS_BIN", &program);
        nextest.env("STACKGLASS_BIN", &tools.stackglass).env("WORKLOADS_BIN", &tools.workloads);
        let (succeeded, text) = shown_and_returned(&mut nextest, false)?;
        let of_version = summary(&text).context("nextest printed no summary")?;
        if of_version.passed + of_version.failed == 0 || !succeeded && of_version.failed == 0 {
            bail!("nextest failed without naming a test");
        }
        tally.passed += of_version.passed;
        tally.failed += of_version.failed;
    }
    Ok(tally)
}

/// Builds the program with one version of tokio, as a workspace of its own.
fn build(version: &str) -> Result<PathBuf> {
    let folder = target_folder().join("tokio-versions");
    let package = folder.join(version);
    fs::create_dir_all(&package)?;
    let described = fs::read_to_string(root().join("tests/awaits/Cargo.toml"))?;
    fs::write(package.join("Cargo.toml"), manifest(&described, version)?)?;
    let mut build = cargo(&["build", "--quiet", "--target-dir"]);
    build.arg(folder.join("built")).arg("--manifest-path").arg(package.join("Cargo.toml"));
    if !succeeds(&mut build)? {
        bail!("the program does not build");
    }
    let program = package.join("awaits");
    fs::copy(folder.join("built/debug/awaits"), &program)?;
    Ok(program)
}

/// The manifest of the program with another version of tokio.
fn manifest(described: &str, version: &str) -> Result<String> {
    let (_, dependencies) = described.split_once("[dependencies]\n").context("there are no dependencies")?;
    let dependencies = dependencies.split("\n[").next().unwrap_or(dependencies);
    // This manifest is in another folder.
    let dependencies =
        dependencies.replace("path = \"..", &format!("path = \"{}", root().join("tests").display()));
    let mut lines = Vec::new();
    // Optional ones are for other packages.
    for line in dependencies.lines().filter(|line| !line.trim().is_empty() && !line.contains("optional")) {
        match line.strip_prefix("tokio = { version = \"").and_then(|rest| rest.split_once('"')) {
            Some((_, rest)) => lines.push(format!("tokio = {{ version = \"={version}\"{rest}")),
            None => lines.push(line.to_owned()),
        }
    }
    let source = root().join("tests/awaits/src/main.rs");
    Ok(format!(
        "[package]\nname = \"awaits\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[[bin]]\nname = \"awaits\"\n\
         path = {source:?}\n\n[features]\nwrapped = []\n\n[dependencies]\n{}\n\n[profile.dev]\nopt-level = 1\n\n[profile.dev.package.\"*\"]\ndebug = false\n",
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::manifest;

    #[test]
    fn only_the_version_of_tokio_is_another() {
        let described = "[package]\nname = \"x\"\n\n[dependencies]\nfutures = \"0.3\"\ntokio = { version = \"1.43\", features = [\"full\"] }\ntokio-stream = \"0.1\"\n";
        let text = manifest(described, "1.48.0").expect("it has dependencies");
        let (_, text) = text.split_once("[dependencies]\n").expect("they are there");
        assert!(
            text.starts_with(
                "futures = \"0.3\"\ntokio = { version = \"=1.48.0\", features = [\"full\"] }\ntokio-stream"
            ),
            "{text}"
        );
    }
}
