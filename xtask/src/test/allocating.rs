//! Recordings of programs that are not made for the tests, as pages and as what `stackglass allocs --json` says of them.

use crate::run::{output, root, succeeds};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

const PYTHON: &str = "
import json, time
kept, end = [], time.monotonic() + 0.8
while time.monotonic() < end:
    rows = [{'name': str(i), 'list': list(range(i % 50))} for i in range(500)]
    kept.append(json.loads(json.dumps(rows))[:10])
    time.sleep(0.01)
";

/// What rows may be.
const KEYS: [&str; 8] = ["type", "site", "line", "function", "crate", "thread", "process", "size"];

/// Parts of the time that are asked for, in tenths of it.
const RANGES: [(u64, u64); 2] = [(0, 5), (4, 8)];

/// Writes pages and answers for a C program, a Rust program, python3 and git to a folder.
pub(super) fn record(tools: &Tools, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let phases = folder.join("phases");
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O1", "-fno-builtin", "-o"]).arg(&phases).arg(root().join("tests/hosts/phases.c"));
    if !succeeds(&mut cc)? {
        bail!("tests/hosts/phases.c does not compile");
    }
    let mut c = Command::new(phases);
    c.arg("returns");
    let mut rust = Command::new(&tools.workloads);
    rust.args(["text-tree", "--seconds", "0.8"]);
    let mut python = Command::new("python3");
    python.args(["-c", PYTHON]);
    let mut git = Command::new("git");
    git.args(["--no-pager", "log", "--stat", "-n", "200"]);
    thread::scope(|scope| {
        let programs = [("c", c), ("rust", rust), ("python", python), ("git", git)];
        let each = programs.map(|(name, program)| {
            scope.spawn(move || {
                recorded(tools, folder, name, &program).with_context(|| format!("recording {name}"))
            })
        });
        each.into_iter().try_for_each(|one| one.join().expect("recording does not panic"))
    })
}

fn recorded(tools: &Tools, folder: &Path, name: &str, program: &Command) -> Result<()> {
    let stackglass = || {
        let mut command = Command::new(&tools.stackglass);
        command.current_dir(root());
        command
    };
    let file = folder.join(format!("allocs-{name}.glass"));
    let mut record = stackglass();
    record.args(["record", "--allocs", "--quiet", "-o"]).arg(&file).arg("--");
    output(record.arg(program.get_program()).args(program.get_args()))?;
    output(stackglass().arg("view").arg(&file).arg("-o").arg(folder.join(format!("allocs-{name}.html"))))?;
    let info = output(stackglass().args(["info", "--json"]).arg(&file))?;
    let info: serde_json::Value = serde_json::from_str(&info)?;
    let wall = info["wall"].as_u64().context("info has no wall time")?;
    let mut answers = Vec::new();
    let ranges = RANGES.iter().map(|(from, to)| Some((wall * from / 10, wall * to / 10)));
    for range in [None].into_iter().chain(ranges) {
        for by in KEYS {
            let mut allocs = stackglass();
            allocs.arg("allocs").arg(&file).args(["--json", "--by", by]);
            if let Some((from, to)) = range {
                allocs.args(["--from", &format!("{from}ns"), "--to", &format!("{to}ns")]);
            }
            let range = range.map_or("null".to_owned(), |(from, to)| format!("[{from},{to}]"));
            answers
                .push(format!("{{\"by\":\"{by}\",\"range\":{range},\"answer\":{}}}", output(&mut allocs)?));
        }
    }
    fs::write(folder.join(format!("allocs-{name}.json")), format!("[{}]", answers.join(",\n")))?;
    Ok(())
}
