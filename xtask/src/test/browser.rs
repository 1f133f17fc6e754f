//! Tests of the two pages in a browser: Playwright runs Chromium on pages that examples write. One test also runs Firefox, if there is one.
//!
//! Missing programs are installed if possible: browsers by apt-get as root, Playwright by npm in the target folder.

use super::{Extent, Tally, allocating, packages};
use crate::run::{on_path, root, shown_and_returned, succeeds, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TESTS: &str = "crates/flame/browser";
const VIEW: [&str; 9] = [
    "crates/view/browser/view.test.mjs",
    "crates/view/browser/tracks.test.mjs",
    "crates/view/browser/panels.test.mjs",
    "crates/view/browser/heap.test.mjs",
    "crates/view/browser/tasks.test.mjs",
    "crates/view/browser/allocations.test.mjs",
    "crates/view/browser/source.test.mjs",
    "crates/view/browser/commands.test.mjs",
    "crates/view/browser/growing.test.mjs",
];

/// A browser: its package in Debian, the names of its program, and the variable that may name one.
struct Browser {
    package: &'static str,
    programs: &'static [&'static str],
    variable: &'static str,
}

const CHROMIUM: Browser = Browser {
    package: "chromium",
    programs: &["chromium", "chromium-browser", "google-chrome"],
    variable: "CHROMIUM",
};
const FIREFOX: Browser =
    Browser { package: "firefox-esr", programs: &["firefox-esr", "firefox"], variable: "FIREFOX" };

/// All browser tests; those of speed only in a full run.
pub fn run(extent: Extent) -> Result<Tally> {
    let chromium = CHROMIUM.found_or_installed()?;
    // Ubuntu, for one, has no package of it.
    let firefox =
        FIREFOX.found_or_installed().inspect_err(|error| eprintln!("not tested in Firefox: {error:#}"));
    let browsers = [Some(chromium), firefox.ok()];
    let folder = target_folder().join("browser");
    packages::install(TESTS, &folder)?;
    for example in ["pages", "view-pages", "view-growing", "view-lanes", "view-beside", "view-sources"] {
        if !succeeds(Tools::example(example)?.arg(folder.join("pages")))? {
            bail!("the pages to be tested could not be written");
        }
    }
    let tools = Tools::with_tests()?;
    allocating::record(&tools, &folder.join("pages"))?;
    // Some bounds are on times, and a neighbour may have had the machine for a while.
    let first = tests(&folder, &browsers, &tools.stackglass, extent)?;
    if first.failed == 0 {
        return Ok(first);
    }
    eprintln!("browser: {} tests failed: second try", first.failed);
    tests(&folder, &browsers, &tools.stackglass, extent)
}

fn tests(
    folder: &Path,
    [chromium, firefox]: &[Option<PathBuf>; 2],
    stackglass: &Path,
    extent: Extent,
) -> Result<Tally> {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap", "--test-concurrency=1"]).current_dir(root());
    let speed = (extent == Extent::Full).then_some("speed");
    let names = ["model", "page", "still"].into_iter().chain(speed);
    node.args(names.map(|test| format!("{TESTS}/{test}.test.mjs"))).args(VIEW);
    node.env("BROWSER_TESTS", folder).env("STACKGLASS", stackglass);
    for (browser, path) in [(CHROMIUM, chromium), (FIREFOX, firefox)] {
        node.envs(path.iter().map(|path| (browser.variable, path)));
    }
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

impl Browser {
    /// The program, installed if necessary and possible.
    fn found_or_installed(&self) -> Result<PathBuf> {
        let found = || self.programs.iter().find(|name| on_path(name)).map(PathBuf::from);
        let asked = std::env::var_os(self.variable).map(PathBuf::from);
        if let Some(browser) = asked.or_else(found) {
            return Ok(which(browser));
        }
        let package = self.package;
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
        if is_root && on_path("apt-get") {
            eprintln!("installing {package} (once)");
            let apt = |arguments: &[&str]| {
                let mut apt = Command::new("apt-get");
                succeeds(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
            };
            let install = ["install", "-y", "-qq", "--no-install-recommends", package, "fonts-dejavu-core"];
            if !apt(&install)? {
                let _ = apt(&["update", "-qq"])? && apt(&install)?;
            }
        }
        found().map(which).with_context(|| {
            let variable = self.variable;
            format!("there is no {package}: install it with `apt-get install -y {package}`, or name one in {variable}")
        })
    }
}

/// Playwright requires a full path.
fn which(name: PathBuf) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file());
    there.unwrap_or(name)
}
