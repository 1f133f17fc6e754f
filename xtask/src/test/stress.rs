//! Records twenty seconds of a program that does everything that is difficult for profilers at once.

use super::{Extent, Tally};
use crate::run::{output, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// Three checks: the program's checks of itself, its exit status, and the recording.
pub fn run(extent: Extent) -> Result<Tally> {
    let tools = Tools::with_tests()?;
    let file = target_folder().join("stress.glass");
    let seconds = if extent == Extent::Full { "120" } else { "20" };
    let mut record = Command::new(&tools.stackglass);
    record.args(["record", "-o"]).arg(&file).arg("--").arg(&tools.workloads);
    let ended = record.args(["hostile", "--seconds", seconds]).output().context("cannot start stackglass")?;

    let mut tally = Tally::default();
    let mut check = |passed: bool, what: &str| {
        let one = Tally::one(passed);
        tally.passed += one.passed;
        tally.failed += one.failed;
        eprintln!("{what}: {}", if passed { "yes" } else { "NO" });
    };
    check(ended.status.success(), "the program kept its exit status");
    let text = String::from_utf8_lossy(&ended.stdout);
    let own: Value = text.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    check(own["wrong"] == 0, "the program found nothing wrong with itself");
    let info = output(Command::new(&tools.truth).arg("about").arg(&file))
        .and_then(|text| Ok(serde_json::from_str::<Value>(&text)?));
    let info = info.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        Value::Null
    });
    let hits = info["hits"].as_u64().unwrap_or(0);
    check(hits > 1000 && info["end"] == "Exit(0)", "the recording is whole");
    eprintln!("{} hits in {} threads", hits, info["threads"]);
    if tally.failed > 0 {
        eprintln!("{text}{}", String::from_utf8_lossy(&ended.stderr));
    }
    Ok(tally)
}
