//! Stacks of known chains, 20, 200 and 2 000 calls deep: the share that is exactly right.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::setup::Setup;
use crate::bench::statistics::Interval;
use crate::run::output;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEPTHS: &[&str] = &["20", "200", "2000"];

/// Stackglass's stacks at 10 kHz (at least 2·10^4 for each depth), the peers' at 1 kHz.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for depth in DEPTHS {
        figures.push(ours(setup, depth)?);
    }
    type Peer = (&'static str, fn(&Setup, &str) -> Result<Value>);
    let peers: &[Peer] = &[("samply", samply), ("perf dwarf", perf), ("pprof-rs", pprof)];
    for (name, record) in peers {
        for depth in DEPTHS {
            let what = format!("{name}, depth {depth}");
            figures.push(match record(setup, depth) {
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

fn ours(setup: &Setup, depth: &str) -> Result<Figure> {
    let file = setup.scratch(&format!("chain-{depth}.glass"));
    setup.recorded(&file, "100us", &["chain", "--depth", depth, "--seconds", setup.either("6", "1")])?;
    let truth = setup.truth("chain", &file, &[depth])?;
    Ok(figure(format!("stackglass, depth {depth}"), &truth, Some(Bound::AtLeast(0.999))))
}

/// Runs a peer around the chain.
fn record(setup: &Setup, mut words: Vec<String>, depth: &str) -> Result<()> {
    words.extend(setup.workload(&["chain", "--depth", depth, "--seconds", setup.either("4", "1")]));
    setup.run(&words).map(drop)
}

fn samply(setup: &Setup, depth: &str) -> Result<Value> {
    let file = setup.scratch("samply.json.gz");
    let words = setup.peers.samply_record(&file).context("samply is missing")?;
    record(setup, words, depth)?;
    let json = unpacked(&file)?;
    let symbols: PathBuf = setup.scratch("samply.json.syms.json");
    if !symbols.is_file() {
        bail!("samply wrote no {}", symbols.display());
    }
    setup.truth("chain-samply", &json, &[depth])
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

fn perf(setup: &Setup, depth: &str) -> Result<Value> {
    let file = setup.scratch("perf.data");
    let words = setup.peers.perf_record("cpu-clock:u", &file).context("perf is missing")?;
    record(setup, words, depth)?;
    let script = ["script", "--no-inline", "-F", "comm,tid,ip,sym", "-i"];
    let text = output(Command::new("perf").args(script).arg(&file))?;
    let out = setup.scratch("perf.txt");
    std::fs::write(&out, text)?;
    setup.truth("chain-perf", &out, &[depth])
}

fn pprof(setup: &Setup, depth: &str) -> Result<Value> {
    let program = setup.peers.pprof.as_ref().context("pprof-rs is missing")?;
    let file = setup.scratch("pprof.folded");
    let program = program.display().to_string();
    let out = file.to_str().context("the path is text")?;
    let seconds = setup.either("8", "1");
    let words = [program.as_str(), "chain", "--depth", depth, "--seconds", seconds, "--pprof", out];
    setup.run(&words.map(str::to_owned))?;
    setup.truth("chain-folded", &file, &[depth])
}
