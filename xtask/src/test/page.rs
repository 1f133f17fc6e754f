//! The page of `stackglass view`: types, unit tests, and whether what is committed is what its sources give.

use super::{Tally, packages};
use crate::run::{root, shown_and_returned, succeeds, target_folder};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = "crates/view/page";
/// What is built, and then embedded.
const BUILT: [&str; 2] = ["page.js", "page.css"];

/// All checks of the page. They run in a copy beside its packages.
pub fn run() -> Result<Tally> {
    let folder = target_folder().join("view-page");
    packages::install(PAGE, &folder)?;
    for part in ["src", "tests"] {
        let _ = fs::remove_dir_all(folder.join(part));
        copy(&root().join(PAGE).join(part), &folder.join(part))?;
    }
    for file in ["build.mjs", "tsconfig.json"] {
        fs::copy(root().join(PAGE).join(file), folder.join(file))?;
    }
    let node = |arguments: &[&str]| {
        let mut node = Command::new("node");
        node.args(arguments).current_dir(&folder);
        node
    };
    let mut tally = Tally::one(succeeds(&mut node(&["node_modules/typescript/bin/tsc", "--noEmit"]))?);
    let is_built = succeeds(&mut node(&["build.mjs", "built"]))?;
    let is_same = |file: &str| -> Result<bool> {
        Ok(fs::read(folder.join("built").join(file))? == fs::read(root().join(PAGE).join("dist").join(file))?)
    };
    for file in BUILT {
        let same = is_built && is_same(file)?;
        if !same {
            eprintln!(
                "{PAGE}/dist/{file} is not what its sources give: run `npm ci && npm run build` in {PAGE}"
            );
        }
        tally.add(Tally::one(same));
    }
    let mut tests = node(&["--test", "--test-reporter=tap"]);
    let (succeeded, text) = shown_and_returned(&mut tests, true)?;
    let count = |what: &str| -> Option<u64> {
        text.lines().rev().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
    };
    let (passed, failed) =
        count("# pass ").zip(count("# fail ")).context("node says nothing of passed tests")?;
    tally.add(Tally { passed, failed: failed.max((!succeeded).into()) });
    Ok(tally)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
