//! `truth WHAT FILE …`: checks the recording of a workload and prints one line of JSON.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use truth::{NamedStacks, bursts, chain, shares, sleepers, threads};

const USAGE: &str = "truth WHAT FILE
  chain FILE DEPTH          a recording
  chain-folded FILE DEPTH   folded text
  chain-perf FILE DEPTH     output of `perf script -F comm,tid,ip,sym`
  chain-samply FILE DEPTH   samply's JSON, unpacked; names in FILE.syms.json
  shares FILE PREFIX        functions whose name begins with PREFIX
  bursts FILE ACCOUNT       functions of the line of JSON that a workload `burst-…` printed
  threads FILE              every thread
  sleepers FILE             time asleep by place
  about FILE                totals, processes and counters";

const PROGRAM: &str = "workloads";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("{}", answer(&arguments)?);
    Ok(())
}

fn answer(arguments: &[&str]) -> Result<Value> {
    let named = |file: &str| -> Result<NamedStacks> {
        Ok(NamedStacks::of_recording(&truth::read(Path::new(file))?, PROGRAM))
    };
    let text = |file: &str| std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"));
    let (named, depth) = match *arguments {
        ["chain", file, depth] => (named(file)?, depth),
        ["chain-folded", file, depth] => (NamedStacks::of_folded(&text(file)?)?, depth),
        ["chain-perf", file, depth] => (NamedStacks::of_perf_script(&text(file)?), depth),
        ["chain-samply", file, depth] => {
            let symbols = format!("{file}.syms.json");
            let json = |file: &str| -> Result<Value> { Ok(serde_json::from_str(&text(file)?)?) };
            (NamedStacks::of_samply(&json(file)?, &json(&symbols)?)?, depth)
        }
        ["shares", file, prefix] => return Ok(shares::json(&shares::by_function(&named(file)?, prefix))),
        ["bursts", file, account] => return judged_bursts(file, &text(account)?),
        ["threads", file] => return Ok(threads::json(&threads::accounts(&truth::read(Path::new(file))?))),
        ["sleepers", file] => return Ok(sleepers::check(&named(file)?).json()),
        ["about", file] => return info(Path::new(file)),
        _ => bail!("{USAGE}"),
    };
    Ok(chain::check(&named, depth.parse().context("the depth is a number")?).json())
}

fn judged_bursts(file: &str, account: &str) -> Result<Value> {
    let recording = truth::read(Path::new(file))?;
    let named = NamedStacks::of_recording(&recording, PROGRAM);
    let said = serde_json::from_str(account).context("the account is no JSON")?;
    Ok(bursts::judge(&named, recording.info.delay.0, &said)?.json())
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
