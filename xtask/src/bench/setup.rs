//! The setup of measurements: programs, scratch files, and measured runs.

use super::peers::Peers;
use crate::run::{output, root, shown};
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs and files that measurements use.
pub struct Setup {
    /// The project's programs.
    pub tools: Tools,
    /// Other profilers.
    pub peers: Peers,
    /// Whether runs are fewer and shorter.
    pub quick: bool,
    folder: PathBuf,
}

/// Cost and output of one run of a command.
#[derive(Clone, Debug)]
pub struct Run {
    /// Wall time of the command, s.
    pub wall: f64,
    /// CPU time of the command and all its children, s.
    pub tree_cpu: f64,
    /// Peak resident memory of the command or of one of its children, MB.
    pub peak: f64,
    /// CLOCK_MONOTONIC when it ended, s.
    pub end: f64,
    /// The line of JSON that the workload printed, or null.
    pub report: Value,
}

impl Run {
    /// A number in the workload's report.
    pub fn number(&self, key: &str) -> Result<f64> {
        self.report[key]
            .as_f64()
            .with_context(|| format!("the workload did not report {key}: {}", self.report))
    }
}

impl Setup {
    /// Builds the project's programs and searches the peers.
    pub fn open(quick: bool, peers: &Path) -> Result<Setup> {
        let folder = crate::run::target_folder().join("bench");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let peers = Peers::find(peers);
        peers.remarks.iter().for_each(|remark| eprintln!("{remark}"));
        Ok(Setup { tools: Tools::release()?, peers, quick, folder })
    }

    /// A temporary file.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `full`, or `quick` in a quick run.
    pub fn either<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A workload's command line.
    pub fn workload(&self, arguments: &[&str]) -> Vec<String> {
        let mut words = vec![self.tools.workloads.display().to_string()];
        words.extend(arguments.iter().map(|argument| argument.to_string()));
        words
    }

    /// `stackglass record` into `file`, ready for the program and its arguments.
    pub fn record(&self, file: &Path, delay: &str) -> Vec<String> {
        let words = [
            &self.tools.stackglass.display().to_string(),
            "record",
            "--delay",
            delay,
            "-o",
            &file.display().to_string(),
            "--",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// The floor of `record`, ready for the program and its arguments: `bench/floor/floor.c`, compiled now.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn floor(&self) -> Result<Vec<String>> {
        let (source, program) = (root().join("bench/floor/floor.c"), self.scratch("floor"));
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).arg(&program).arg(&source);
        output(&mut compiler)?;
        Ok(vec![program.display().to_string(), "inherited".to_owned()])
    }

    /// Runs a command, measured by `workloads measured`.
    pub fn run(&self, words: &[String]) -> Result<Run> {
        self.run_with(words, Stdio::piped())
    }

    /// The same; the file gets what the command prints.
    pub fn run_into(&self, words: &[String], file: &Path) -> Result<Run> {
        let file = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        self.run_with(words, file.into())
    }

    fn run_with(&self, words: &[String], stdout: Stdio) -> Result<Run> {
        let file = self.scratch(&format!("measured-{:?}", std::thread::current().id()));
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(&self.tools.workloads);
        command.arg("measured").arg(&file).args(words).stdin(Stdio::null()).stdout(stdout);
        let ended = command.output().with_context(|| format!("cannot start {}", shown(&command)))?;
        if !ended.status.success() {
            let report = String::from_utf8_lossy(&ended.stderr);
            bail!("{} failed ({}): {}", words.join(" "), ended.status, report.trim_end());
        }
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let report = stdout
            .lines()
            .filter(|line| line.starts_with("{\"workload\""))
            .find_map(|line| serde_json::from_str(line).ok());
        let measured = Setup::measured(&file)?;
        let number = |key: &str| measured[key].as_f64().unwrap_or(f64::NAN);
        let seconds = |key: &str| number(key) * 1e-9;
        Ok(Run {
            wall: seconds("wall_ns"),
            tree_cpu: seconds("tree_cpu_ns"),
            peak: number("peak_kib") * 1024e-6,
            end: seconds("end_ns"),
            report: report.unwrap_or(Value::Null),
        })
    }

    /// Reads the output of `workloads measured`.
    pub fn measured(file: &Path) -> Result<Value> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Records a workload to `file` and returns its report.
    pub fn recorded(&self, file: &Path, delay: &str, workload: &[&str]) -> Result<Run> {
        self.run(&[self.record(file, delay), self.workload(workload)].concat())
    }

    /// Runs the checker.
    pub fn truth(&self, what: &str, file: &Path, arguments: &[&str]) -> Result<Value> {
        let text = output(Command::new(&self.tools.truth).arg(what).arg(file).args(arguments))?;
        serde_json::from_str(&text).context("the checker prints JSON")
    }
}
