//! Tests of the two pages in a browser: Playwright runs Chromium on pages that examples write. One test also runs Firefox, if there is one.
//!
//! Missing programs are installed if possible: browsers by apt-get as root, Playwright by npm in the target folder.

use super::{Extent, Tally, allocating, packages};
use crate::run::{on_path, root, shown_and_returned, succeeds, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

const TESTS: &str = "crates/flame/browser";
const VIEW: &str = "crates/view/browser";

/// Files of tests that run beside each other: none measures time. Longest first.
const TOGETHER: [(&str, &str); 13] = [
    (VIEW, "panels"),
    (TESTS, "page"),
    (VIEW, "allocations"),
    (VIEW, "tracks"),
    (VIEW, "source"),
    (VIEW, "first"),
    (VIEW, "heap"),
    (VIEW, "tasks"),
    (VIEW, "growing"),
    (VIEW, "commands"),
    (VIEW, "view"),
    (TESTS, "model"),
    (TESTS, "still"),
];
/// Files of tests that measure frames or times: one after the other.
const ALONE: [(&str, &str); 2] = [(TESTS, "busy"), (VIEW, "busy")];
/// The same, only in a full run.
const SPEED: (&str, &str) = (TESTS, "speed");

/// What writes pages for the tests.
const EXAMPLES: [&str; 6] =
    ["pages", "view-pages", "view-growing", "view-lanes", "view-beside", "view-sources"];

/// A browser.
struct Browser {
    /// Package in Debian, and program, without windows: it opens pages several times faster.
    fast: Option<&'static str>,
    package: &'static str,
    programs: &'static [&'static str],
    /// The variable that may name one.
    variable: &'static str,
}

const CHROMIUM: Browser = Browser {
    fast: Some("chromium-headless-shell"),
    package: "chromium",
    programs: &["chromium", "chromium-browser", "google-chrome"],
    variable: "CHROMIUM",
};
const FIREFOX: Browser = Browser {
    fast: None,
    package: "firefox-esr",
    programs: &["firefox-esr", "firefox"],
    variable: "FIREFOX",
};

/// All browser tests; those of speed only in a full run.
pub fn run(extent: Extent) -> Result<Tally> {
    no_file_is_left_out()?;
    let chromium = CHROMIUM.found_or_installed()?;
    // Ubuntu, for one, has no package of it.
    let firefox =
        FIREFOX.found_or_installed().inspect_err(|error| eprintln!("not tested in Firefox: {error:#}"));
    let folder = target_folder().join("browser");
    packages::install(TESTS, &folder)?;
    let tools = Tools::with_tests()?;
    let pages = folder.join("pages");
    thread::scope(|scope| {
        let recorded = scope.spawn(|| allocating::record(&tools, &pages));
        for example in EXAMPLES {
            if !succeeds(tools.example(example).arg(&pages))? {
                bail!("the pages to be tested could not be written");
            }
        }
        recorded.join().expect("recording does not panic")
    })?;
    let mut node = Vec::from([("BROWSER_TESTS", folder.clone()), ("STACKGLASS", tools.stackglass)]);
    node.extend(firefox.ok().map(|firefox| (FIREFOX.variable, firefox)));
    node.push((CHROMIUM.variable, chromium));
    let server = Server::start(&node)?;
    node.push(("CHROMIUM_SERVER", PathBuf::from(&server.address)));
    let mut tally = tests(&node, &TOGETHER, 2)?;
    tally.add(tests(&node, &ALONE, 1)?);
    if extent == Extent::Full {
        tally.add(tests(&node, &[SPEED], 1)?);
    }
    Ok(tally)
}

/// A file of tests that is in no list would not be run, and nothing would tell.
fn no_file_is_left_out() -> Result<()> {
    for folder in [TESTS, VIEW] {
        let listed = TOGETHER.iter().chain(&ALONE).chain([&SPEED]).filter(|(of, _)| *of == folder);
        let mut listed: Vec<String> = listed.map(|(_, name)| format!("{name}.test.mjs")).collect();
        let names = fs::read_dir(root().join(folder))?.map(|entry| Ok(entry?.file_name().into_string()));
        let names: Vec<_> = names.collect::<Result<_>>()?;
        let mut there: Vec<String> =
            names.into_iter().flatten().filter(|name| name.ends_with(".test.mjs")).collect();
        listed.sort();
        there.sort();
        if listed != there {
            bail!("{folder} has {there:?}, and the lists of xtask/src/test/browser.rs have {listed:?}");
        }
    }
    Ok(())
}

/// Runs some files of tests, so many at a time.
fn tests(variables: &[(&str, PathBuf)], files: &[(&str, &str)], at_a_time: u32) -> Result<Tally> {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap", &format!("--test-concurrency={at_a_time}")]);
    node.args(files.iter().map(|(folder, name)| format!("{folder}/{name}.test.mjs"))).current_dir(root());
    let (succeeded, text) = shown_and_returned(node.envs(variables.iter().cloned()), true)?;
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

/// One Chromium for all files: to start it takes as long as a test.
struct Server {
    node: Child,
    address: String,
}

impl Server {
    fn start(variables: &[(&str, PathBuf)]) -> Result<Server> {
        let mut node = Command::new("node");
        node.arg(format!("{TESTS}/server.mjs")).current_dir(root()).envs(variables.iter().cloned());
        let mut node =
            node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start node")?;
        let mut address = String::new();
        BufReader::new(node.stdout.take().expect("stdout is piped")).read_line(&mut address)?;
        let server = Server { node, address: address.trim().to_owned() };
        if server.address.is_empty() {
            bail!("the browser does not start");
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.node.stdin.take());
        // It has nothing to say any more.
        let _ = self.node.wait();
    }
}

impl Browser {
    /// The program, installed if necessary and possible; the fast one if possible.
    fn found_or_installed(&self) -> Result<PathBuf> {
        if let Some(browser) = std::env::var_os(self.variable).map(PathBuf::from) {
            return Ok(which(browser));
        }
        let found = || self.fast.iter().chain(self.programs).find(|name| on_path(name)).copied();
        match (found(), self.fast) {
            // Enough is there: no lists of packages are fetched for it.
            (Some(other), Some(fast)) if other != fast => _ = install(fast)?,
            (Some(_), _) => {}
            (None, fast) => {
                let packages: Vec<&str> = fast.into_iter().chain([self.package]).collect();
                if !install_one(&packages)? && apt(&["update", "-qq"])? {
                    install_one(&packages)?;
                }
            }
        }
        found().map(PathBuf::from).map(which).with_context(|| {
            let (package, variable) = (self.package, self.variable);
            format!("there is no {package}: install it with `apt-get install -y {package}`, or name one in {variable}")
        })
    }
}

/// The first one that can be installed.
fn install_one(packages: &[&str]) -> Result<bool> {
    for package in packages {
        if install(package)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// False if that fails, or nobody may.
fn install(package: &str) -> Result<bool> {
    if may_install() {
        eprintln!("installing {package} (once)");
    }
    apt(&["install", "-y", "-qq", "--no-install-recommends", package, "fonts-dejavu-core"])
}

fn apt(arguments: &[&str]) -> Result<bool> {
    let mut apt = Command::new("apt-get");
    Ok(may_install() && succeeds(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))?)
}

fn may_install() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    is_root && on_path("apt-get")
}

/// Playwright requires a full path.
fn which(name: PathBuf) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file());
    there.unwrap_or(name)
}
