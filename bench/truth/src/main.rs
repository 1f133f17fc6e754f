//! `truth WHAT FILE …`: checks the recording of a workload and prints one line of JSON.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use truth::{NamedStacks, chain, threads};

const USAGE: &str = "truth WHAT FILE
  chain FILE DEPTH          a recording
  threads FILE              every thread
  about FILE                totals, processes and counters";

const PROGRAM: &str = "workloads";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("{}", answer(&arguments)?);
    Ok(())
}

fn answer(arguments: &[&str]) -> Result<Value> {
    match *arguments {
        ["chain", file, depth] => {
            let named = NamedStacks::of_recording(&truth::read(Path::new(file))?, PROGRAM);
            Ok(chain::check(&named, depth.parse().context("the depth is a number")?).json())
        }
        ["threads", file] => Ok(threads::json(&threads::accounts(&truth::read(Path::new(file))?))),
        ["about", file] => info(Path::new(file)),
        _ => bail!("{USAGE}"),
    }
}

fn info(file: &Path) -> Result<Value> {
    let recording = truth::read(file)?;
    let processes: Vec<Value> = recording
        .processes
        .iter()
        .map(|p| json!({"pid": p.pid, "exe": &*p.exe, "forked": p.forked, "counters": p.counters}))
        .collect();
    let info = &recording.info;
    Ok(json!({
        "wall_ns": info.wall.0, "delay_ns": info.delay.0, "full": info.full, "own_cpu_ns": info.own_cpu.0,
        "end": info.end.map(|end| format!("{end:?}")), "remarks": info.remarks, "processes": processes,
        "threads": recording.threads.len(), "samples": recording.samples.len(),
        "hits": recording.samples.iter().map(|sample| u64::from(sample.hits)).sum::<u64>(),
    }))
}
