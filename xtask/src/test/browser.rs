//! Tests of the two pages in a browser: Playwright runs Chromium on pages that examples write.
//!
//! Missing programs are installed if possible: Chromium by apt-get as root, Playwright by npm in the target folder.

use super::{Extent, Tally, allocating, packages};
use crate::run::{on_path, root, shown_and_returned, succeeds, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TESTS: &str = "crates/flame/browser";
const VIEW: [&str; 8] = [
    "crates/view/browser/view.test.mjs",
    "crates/view/browser/tracks.test.mjs",
    "crates/view/browser/panels.test.mjs",
    "crates/view/browser/heap.test.mjs",
    "crates/view/browser/tasks.test.mjs",
    "crates/view/browser/allocations.test.mjs",
    "crates/view/browser/source.test.mjs",
    "crates/view/browser/commands.test.mjs",
];
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// All browser tests; those of speed only in a full run.
pub fn run(extent: Extent) -> Result<Tally> {
    let chromium = chromium()?;
    let folder = target_folder().join("browser");
    packages::install(TESTS, &folder)?;
    for example in ["pages", "view-pages", "view-lanes", "view-beside", "view-sources"] {
        if !succeeds(Tools::example(example)?.arg(folder.join("pages")))? {
            bail!("the pages to be tested could not be written");
        }
    }
    let tools = Tools::with_tests()?;
    allocating::record(&tools, &folder.join("pages"))?;
    // Some bounds are on times, and a neighbour may have had the machine for a while.
    let first = tests(&folder, &chromium, &tools.stackglass, extent)?;
    if first.failed == 0 {
        return Ok(first);
    }
    eprintln!("browser: {} tests failed: second try", first.failed);
    tests(&folder, &chromium, &tools.stackglass, extent)
}

fn tests(folder: &Path, chromium: &Path, stackglass: &Path, extent: Extent) -> Result<Tally> {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap", "--test-concurrency=1"]).current_dir(root());
    let speed = (extent == Extent::Full).then_some("speed");
    let names = ["model", "page", "still"].into_iter().chain(speed);
    node.args(names.map(|test| format!("{TESTS}/{test}.test.mjs"))).args(VIEW);
    node.env("BROWSER_TESTS", folder).env("CHROMIUM", chromium).env("STACKGLASS", stackglass);
    let (succeeded, text) = shown_and_returned(&mut node, true)?;
    let count = |what: &str| -> Option<u64> {
        text.lines().rev().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
    };
    let tally = count("# pass ").zip(count("# fail ")).context("node says nothing of passed tests")?;
    let tally = Tally { passed: tally.0, failed: tally.1 };
    if !succeeded && tally.failed == 0 {
        bail!("node failed without naming a test");
    }
    Ok(tally)
}

/// The browser, installed if necessary and possible.
fn chromium() -> Result<PathBuf> {
    let found = || BROWSERS.iter().find(|name| on_path(name)).map(PathBuf::from);
    let asked = std::env::var_os("CHROMIUM").map(PathBuf::from);
    if let Some(browser) = asked.or_else(found) {
        return Ok(which(browser));
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    if is_root && on_path("apt-get") {
        eprintln!("installing chromium (once)");
        let apt = |arguments: &[&str]| {
            let mut apt = Command::new("apt-get");
            succeeds(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
        };
        let install = ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"];
        if !apt(&install)? {
            let _ = apt(&["update", "-qq"])? && apt(&install)?;
        }
    }
    found().map(which).context(
        "there is no Chromium: install it with `apt-get install -y chromium`, or name one in CHROMIUM",
    )
}

/// Playwright requires a full path.
fn which(name: PathBuf) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file());
    there.unwrap_or(name)
}
