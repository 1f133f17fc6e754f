//! A program of which snapshots are taken while it runs.

use crate::bench::setup::{Run, Setup};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A workload under `stackglass run --allocs` that runs until its standard input ends.
pub struct Program {
    launcher: Child,
    pid: u32,
}

impl Program {
    /// Starts it, and waits until it is ready.
    pub fn start(setup: &Setup, workloads: &Path, words: &[&str]) -> Result<Program> {
        let mut launcher = Command::new(&setup.tools.stackglass)
            .args(["run", "--allocs", "--"])
            .arg(workloads)
            .args(words)
            .args(["--seconds", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(launcher.stderr.take().context("no output")?).lines();
        if !lines.any(|line| line.is_ok_and(|line| line == "ready")) {
            bail!("the workload did not get ready");
        }
        let id = launcher.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let pid = children.split_ascii_whitespace().next().context("no program")?.parse()?;
        Ok(Program { launcher, pid })
    }

    /// Takes a snapshot.
    pub fn take(&self, setup: &Setup, file: &Path, flags: &[&str]) -> Result<Run> {
        let stackglass = setup.tools.stackglass.display().to_string();
        let words = ["heap", "take", &self.pid.to_string(), "-o", &file.display().to_string()];
        let words = words.iter().chain(flags).map(|word| (*word).to_owned());
        setup.run(&[stackglass].into_iter().chain(words).collect::<Vec<String>>())
    }

    /// Its resident memory, GB.
    pub fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: f64 = field.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024e-9)
    }

    /// Ends it, and returns what it reports.
    pub fn end(mut self) -> Result<Value> {
        drop(self.launcher.stdin.take());
        let mut report = String::new();
        self.launcher.stdout.take().context("no output")?.read_to_string(&mut report)?;
        self.launcher.wait()?;
        serde_json::from_str(&report).context("the workload prints JSON")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Standard input ends, so the program does as well.
        drop(self.launcher.stdin.take());
        let _ = self.launcher.wait();
    }
}
