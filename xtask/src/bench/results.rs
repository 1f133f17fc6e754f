//! Writes `bench/RESULTS.md` from the stored figures in `bench/results.json`.

use super::figure::Figure;
use super::peers::{Peers, version};
use crate::run::{output, root};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// The name under which versions are stored, beside those of groups.
const PEERS: &str = "peers";

fn kept_file() -> PathBuf {
    root().join("bench/results.json")
}

fn kept() -> Map<String, Value> {
    let text = std::fs::read_to_string(kept_file()).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Stores the figures of a group with the date and the load of the machine. `others` is the share of the CPUs that
/// other programs used meanwhile.
pub fn keep(name: &str, title: &str, figures: &[Figure], quick: bool, others: Option<f64>) -> Result<()> {
    let mut all = kept();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let others = others
        .map_or(String::new(), |share| format!(", other programs used {:.0} % of the CPUs", share * 100.0));
    let load = format!("{load}{others}{}", priority());
    let date = output(Command::new("date").arg("+%Y-%m-%d %H:%M"))?;
    let figures: Vec<Value> = figures.iter().map(Figure::json).collect();
    let group = json!({
        "title": title, "date": date.trim(), "load": load, "machine": machine(), "quick": quick, "figures": figures
    });
    all.insert(name.to_owned(), group);
    store(&all)
}

fn store(all: &Map<String, Value>) -> Result<()> {
    let text = serde_json::to_string_pretty(all)?;
    std::fs::write(kept_file(), text + "\n").context("cannot write bench/results.json")
}

/// A note if the measurement does not run at the default priority, as on a machine with other work.
fn priority() -> String {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Field 19, counted after the name in parentheses, which may contain spaces.
    let nice = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(16));
    match nice {
        None | Some("0") => String::new(),
        Some(nice) => format!(", all processes at nice {nice}"),
    }
}

const HEAD: &str = "\
# Accuracy and cost

`cargo xtask bench` writes this file; do not edit it. Each figure is followed by its interval: 95 % of a bootstrap over
alternating rounds, or the smallest and the largest of the runs. *held*: the whole interval keeps the bound. *open*: the
bound lies within the interval. **MISSED**: the whole interval lies beyond the bound. Rows without a bound are other
profilers, measured in the same run, or additional figures.
";

/// Stores the versions of the peers that exist. Those of others stay: groups that were measured with them stay as well.
pub fn store_versions(peers: &Peers) -> Result<()> {
    let mut all = kept();
    let mut versions = all.get(PEERS).and_then(Value::as_object).cloned().unwrap_or_default();
    let Peers { samply, perf, ripgrep, heaptrack, valgrind, jaq, .. } = peers;
    for peer in [samply, perf, ripgrep, heaptrack, valgrind, jaq].into_iter().flatten() {
        let name = peer.file_name().unwrap_or_default().to_string_lossy().into_owned();
        versions.insert(name, version(peer).into());
    }
    all.insert(PEERS.to_owned(), versions.into());
    store(&all)
}

/// Writes all stored groups in the given order.
pub fn write(order: &[&str]) -> Result<()> {
    let mut text = String::from(HEAD);
    let here = machine();
    writeln!(text, "\nMachine, unless a group names another: {here}\n")?;
    let all = kept();
    for version in all.get(PEERS).and_then(Value::as_object).into_iter().flat_map(Map::values) {
        writeln!(text, "- {}", version.as_str().unwrap_or(""))?;
    }
    for group in order.iter().filter_map(|name| all.get(*name)) {
        let field = |value: &Value, key: &str| value[key].as_str().unwrap_or("").replace(['\n', '|'], " ");
        writeln!(text, "\n## {}\n", field(group, "title"))?;
        let quick = if group["quick"] == true { ", quick: few and short runs" } else { "" };
        let machine = field(group, "machine");
        let machine =
            if machine.is_empty() || machine == here { String::new() } else { format!("; {machine}") };
        writeln!(text, "{}, load average {}{quick}{machine}\n", field(group, "date"), field(group, "load"))?;
        writeln!(text, "| | bound | measured | | |\n| --- | --- | --- | --- | --- |")?;
        for figure in group["figures"].as_array().map_or(&[][..], |figures| figures) {
            let cells = ["what", "must", "measured", "verdict", "note"].map(|key| field(figure, key));
            writeln!(text, "| {} |", cells.join(" | "))?;
        }
    }
    std::fs::write(root().join("bench/RESULTS.md"), text).context("cannot write bench/RESULTS.md")
}

/// The machine in one line.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    let kernel = output(Command::new("uname").arg("-sr")).unwrap_or_default();
    let compiler = output(Command::new("rustc").arg("--version")).unwrap_or_default();
    format!("{}, {cores} cores, {}, {}", model.unwrap_or("unknown CPU"), kernel.trim(), compiler.trim())
}
