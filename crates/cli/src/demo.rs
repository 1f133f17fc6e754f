//! `stackglass demo`: profile a bundled program, print the report, and suggest next steps.

use crate::failure::{Failure, Outcome};
use crate::output::{Output, output_file};
use crate::record_program::{Job, record};
use crate::sampling_flags::SamplingFlags;
use clap::Args;
use stackglass_collect::launch::Program;
use stackglass_profile::sanitize;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
The bundled program has threads that compute, sleep, wait for a lock, recurse,
allocate, and are called back by qsort of the C library. It runs for three
seconds, as a child process.";

/// Profile a bundled program, as an example.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// File for the recording
    #[arg(short, long, value_name = "FILE", default_value = "demo.glass", value_parser = output_file())]
    output: PathBuf,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this executable to start it again: {error}")))?;
    let status = record(Job {
        program: Program { name: "stackglass".into(), path },
        arguments: vec!["demo-workload".into()],
        folder: None,
        variables: Vec::new(),
        output: Output::named(flags.output.clone()),
        sampling: SamplingFlags {
            view: false,
            delay: Duration::from_millis(1),
            words: 10_000_000,
            duration: None,
            delay_start: None,
            no_children: false,
            walltime: false,
            allocs: None,
            heap_at: None,
            heap_file: None,
            track: Default::default(),
            no_time: false,
            sampler: None,
            peek_duration: Duration::from_secs(1),
            quiet: false,
        },
    })?;
    let file = flags.output.display().to_string();
    let file = sanitize(&file);
    let command_name = own_command();
    let mut out = std::io::stderr().lock();
    writeln!(out, "\nTry next:")?;
    for (what, command) in [
        ("the same recording, one row per function and line", format!("print {file} --format flat")),
        ("its processes and threads, and how sampling went", format!("info {file}")),
        ("your own program, without changes", "record -- ./your-program".into()),
    ] {
        writeln!(out, "  {what}:\n    {command_name} {command}")?;
    }
    Ok(status)
}

/// How to call this command again. Under `cargo run`, Cargo sets `CARGO`.
fn own_command() -> &'static str {
    match (std::env::var_os("CARGO"), cfg!(debug_assertions)) {
        (Some(_), false) => "cargo run --release --",
        (Some(_), true) => "cargo run --",
        (None, _) => "stackglass",
    }
}
