//! The fuzz targets of `fuzz/`, one minute each, in a full run only.
//!
//! Stable Rust and a C++ compiler suffice. libFuzzer's output goes to a log next to its findings. The log shows that it ran
//! and that coverage was measured.

use super::{Extent, Tally};
use crate::run::{cargo, root, succeeds, target_folder};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Seconds for each target.
const SECONDS: u64 = 60;

/// One check for each target.
pub fn run(extent: Extent) -> Result<Tally> {
    if extent == Extent::Quick {
        eprintln!(
            "left to `cargo xtask test --full`; what was found before is read by the tests of each crate"
        );
        return Ok(Tally::default());
    }
    let built = target_folder().join("fuzz");
    let mut build = cargo(&["build", "--quiet", "--release", "--target-dir"]);
    build.arg(&built).current_dir(root().join("fuzz"));
    // These variables would replace the flags for coverage in `fuzz/.cargo/config.toml`.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        build.env_remove(variable);
    }
    if !succeeds(&mut build)? {
        return Ok(Tally::one(false));
    }
    let mut targets = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/targets")).context("fuzz/targets cannot be read")? {
        let path = entry?.path();
        targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    targets.sort();
    ensure!(!targets.is_empty(), "there are no fuzz targets");
    let mut tally = Tally::default();
    for name in targets {
        let well = match one(&name, &built) {
            Ok(ran) => {
                eprintln!(
                    "{name}: nothing found by {} inputs in {SECONDS} s, which reached {} of {} places",
                    ran.inputs, ran.reached, ran.places
                );
                true
            }
            Err(error) => {
                eprintln!("{name}: {error:#}");
                false
            }
        };
        let one = Tally::one(well);
        tally.passed += one.passed;
        tally.failed += one.failed;
    }
    Ok(tally)
}

/// Coverage of a run, from libFuzzer's output.
struct Ran {
    inputs: u64,
    /// Branches that inputs reached.
    reached: u64,
    /// Instrumented branches.
    places: u64,
}

fn one(name: &str, built: &Path) -> Result<Ran> {
    let findings = built.join("findings").join(name);
    fs::create_dir_all(&findings).with_context(|| format!("cannot make {}", findings.display()))?;
    let log = built.join("findings").join(format!("{name}.log"));
    let mut target = Command::new(built.join("x86_64-unknown-linux-gnu/release").join(name));
    target.arg(format!("-max_total_time={SECONDS}"));
    target.args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    target.arg(&findings).arg(root().join("fuzz/corpus").join(name)).current_dir(&findings);
    target.stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?);
    let well = succeeds(&mut target)?;
    let text = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    if !well {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].iter().for_each(|line| eprintln!("{line}"));
    }
    ensure!(well, "FOUND SOMETHING: see above, {} and crash-… in {}", log.display(), findings.display());
    let ran = Ran {
        inputs: number_after(&text, "stat::number_of_executed_units:").unwrap_or(0),
        reached: number_after(&text, "DONE   cov:").unwrap_or(0),
        places: number_before(&text, " inline 8-bit counters").unwrap_or(0),
    };
    ensure!(ran.inputs > 1000, "only {} inputs were tried: see {}", ran.inputs, log.display());
    ensure!(
        ran.reached > 100 && ran.places > 1000,
        "it was built without the flags of fuzz/.cargo/config.toml: see {}",
        log.display()
    );
    Ok(ran)
}

fn number_after(text: &str, label: &str) -> Option<u64> {
    text.split_once(label)?.1.split_whitespace().next()?.parse().ok()
}

fn number_before(text: &str, label: &str) -> Option<u64> {
    text.split_once(label)?.0.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{number_after, number_before};

    #[test]
    fn libfuzzer_is_understood() {
        let text = "INFO: Loaded 1 modules   (41231 inline 8-bit counters): 41231 [0x5, 0x6),\n#2 INITED\n\
                    #1234567\tDONE   cov: 2003 ft: 5315 corp: 736/313Kb\n\
                    stat::number_of_executed_units: 1234567\nstat::average_exec_per_sec:     9\n";
        assert_eq!(number_after(text, "stat::number_of_executed_units:"), Some(1_234_567));
        assert_eq!(number_after(text, "DONE   cov:"), Some(2003));
        assert_eq!(number_before(text, " inline 8-bit counters"), Some(41_231));
        assert_eq!(number_before("INFO: Running", " inline 8-bit counters"), None);
    }
}
