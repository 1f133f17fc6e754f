//! Stacks of known chains, 20, 200 and 2 000 calls deep: what share is exactly right?

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::lab::Lab;
use crate::bench::statistics::Interval;
use crate::run::output;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEPTHS: &[&str] = &["20", "200", "2000"];

/// Our own stacks at 10 kHz (at least 2·10^4 for each depth), the peers' at 1 kHz.
pub fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for depth in DEPTHS {
        figures.push(ours(lab, depth)?);
    }
    type Peer = (&'static str, fn(&Lab, &str) -> Result<Value>);
    let peers: &[Peer] = &[("samply", samply), ("perf dwarf", perf), ("pprof-rs", pprof)];
    for (name, record) in peers {
        for depth in DEPTHS {
            let what = format!("{name}, depth {depth}");
            figures.push(match record(lab, depth) {
                Ok(truth) => figure(what, &truth, None),
                Err(error) => Figure::missing(what, format!("{error:#}")),
            });
        }
    }
    Ok(figures)
}

fn figure(what: String, truth: &Value, bound: Option<Bound>) -> Figure {
    let number = |key: &str| truth[key].as_u64().unwrap_or(0);
    let interval = Interval::share(number("right"), number("hits"));
    let figure = match bound {
        Some(bound) => Figure::must(what, interval, Unit::Percent, bound),
        None => Figure::told(what, interval, Unit::Percent),
    };
    let wrong =
        truth["wrong"][0].as_str().map_or(String::new(), |stack| format!("; first wrong one: {stack}"));
    figure.note(format!("{} stacks, {} outside the chain{wrong}", number("hits"), number("outside")))
}

fn ours(lab: &Lab, depth: &str) -> Result<Figure> {
    let file = lab.scratch(&format!("chain-{depth}.glass"));
    lab.recorded(&file, "100us", &["chain", "--depth", depth, "--seconds", lab.either("6", "1")])?;
    let truth = lab.truth("chain", &file, &[depth])?;
    Ok(figure(format!("stackglass, depth {depth}"), &truth, Some(Bound::AtLeast(0.999))))
}

/// Runs a peer around the chain.
fn record(lab: &Lab, mut words: Vec<String>, depth: &str) -> Result<()> {
    words.extend(lab.workload(&["chain", "--depth", depth, "--seconds", lab.either("4", "1")]));
    lab.run(&words).map(drop)
}

fn samply(lab: &Lab, depth: &str) -> Result<Value> {
    let file = lab.scratch("samply.json.gz");
    let words = lab.peers.samply_record(lab, &file).context("samply is missing")?;
    record(lab, words, depth)?;
    let json = unpacked(&file)?;
    let symbols: PathBuf = lab.scratch("samply.json.syms.json");
    if !symbols.is_file() {
        bail!("samply wrote no {}", symbols.display());
    }
    lab.truth("chain-samply", &json, &[depth])
}

fn unpacked(file: &Path) -> Result<PathBuf> {
    let json = file.with_extension("");
    let packed = std::fs::File::open(file)?;
    let out = std::fs::File::create(&json)?;
    let status =
        Command::new("gzip").arg("-dc").stdin(packed).stdout(out).status().context("cannot start gzip")?;
    if !status.success() {
        bail!("gzip could not unpack {}", file.display());
    }
    Ok(json)
}

fn perf(lab: &Lab, depth: &str) -> Result<Value> {
    let file = lab.scratch("perf.data");
    let words = lab.peers.perf_record("cpu-clock:u", &file).context("perf is missing")?;
    record(lab, words, depth)?;
    let script = ["script", "--no-inline", "-F", "comm,tid,ip,sym", "-i"];
    let text = output(Command::new("perf").args(script).arg(&file))?;
    let out = lab.scratch("perf.txt");
    std::fs::write(&out, text)?;
    lab.truth("chain-perf", &out, &[depth])
}

fn pprof(lab: &Lab, depth: &str) -> Result<Value> {
    let program = lab.peers.pprof.as_ref().context("pprof-rs is missing")?;
    let file = lab.scratch("pprof.folded");
    let program = program.display().to_string();
    let out = file.to_str().context("the path is text")?;
    let seconds = lab.either("8", "1");
    let words = [program.as_str(), "chain", "--depth", depth, "--seconds", seconds, "--pprof", out];
    lab.run(&words.map(str::to_owned))?;
    lab.truth("chain-folded", &file, &[depth])
}
