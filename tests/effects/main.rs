//! Third-party programs, alone and recorded with the shortest delay.
//!
//! `cargo xtask effects` runs this. Each row is a script with real tools, or a test suite of a tool. It runs alone and
//! recorded in copies of one folder; output and exit status must be equal. All its processes end with the row, and its
//! folders are removed.

mod normal;
mod rows;

use rows::{ROWS, Row};
use std::process::{Command, ExitCode, Stdio};
use whole_programs::{Compare, Did, Folder};

const HELP: &str = "\
effects [ROW …]      runs these rows, or all; `effects list` names them
    --quick          leaves out the test suites of others, which take minutes
    --record FLAG    a flag for `stackglass record`, such as --record --sampler=preload";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut names, mut flags, mut quick) = (Vec::new(), Vec::new(), false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--record" => flags.extend(rest.next().cloned()),
            "list" => {
                ROWS.iter().for_each(|row| println!("{:28} {}", row.name, row.info));
                return ExitCode::SUCCESS;
            }
            name if ROWS.iter().any(|row| row.name == name) => names.push(name),
            other => {
                eprintln!("there is no row {other:?}\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    let chosen = |row: &&Row| {
        if names.is_empty() { !(quick && row.long) } else { names.contains(&row.name) }
    };
    println!("{:28} {:>14} {:>14}", "row", "alone", "recorded");
    let (mut passed, mut failed) = (0, 0);
    for row in ROWS.iter().filter(chosen) {
        match run(row, &flags) {
            true => passed += 1,
            false => failed += 1,
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a row, and prints its line and the differences.
fn run(row: &Row, flags: &[String]) -> bool {
    let missing: Vec<&str> =
        row.needs.iter().filter(|(probe, _)| !works(probe)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        println!(
            "{:28} {:>14} {:>14}  cannot run: apt-get install {}",
            row.name,
            "-",
            "-",
            missing.join(" ")
        );
        return false;
    }
    let template = Folder::new();
    for (name, text) in row.files {
        std::fs::write(template.path().join(name), text).expect("a temporary file can be written");
    }
    let prepared = Command::new("bash")
        .args(["-euc", row.prepare])
        .current_dir(template.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if !prepared.is_ok_and(|status| status.success()) {
        println!("{:28} {:>14} {:>14}  cannot be prepared", row.name, "-", "-");
        return false;
    }
    let mut compare = Compare::new("bash")
        .args(["-c", row.script])
        .variable("LC_ALL", "C")
        .each_line(row.normal)
        .patience(row.patience)
        .filled_from(template.path());
    for flag in flags {
        compare = compare.flag(flag);
    }
    let (alone, recorded) = (compare.alone(), compare.recorded());
    let equal = alone == recorded && alone.code.is_some();
    let told = match equal {
        true => String::new(),
        false => "  NOT equal".to_owned(),
    };
    println!("{:28} {:>14} {:>14}{told}", row.name, result(&alone), result(&recorded));
    if !equal {
        alone.difference(&recorded).iter().for_each(|line| println!("    {line}"));
        if compare.alone() != alone {
            println!("    alone a second time it differs as well");
        }
    }
    equal
}

/// Whether a shell condition holds.
fn works(probe: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", probe]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

fn result(did: &Did) -> String {
    let lines = did.stdout.lines().count() + did.stderr.lines().count();
    match did.code {
        Some(code) => format!("{code}, {lines} lines"),
        None => format!("hangs, {lines} lines"),
    }
}
