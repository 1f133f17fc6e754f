//! `stackglass record -- PROGRAM ARGS`: run a program and see where its time goes.

use crate::arguments::{delay, duration, output_file, positive_duration, process_id, words};
use crate::driver::DriverFlag;
use crate::failure::{self, Failure};
use crate::live::Live;
use crate::{Outcome, first_screen, library, peek_text, record_pid};
use clap::{Args, ValueEnum};
use stackglass_collect::launch::{self, Observer, Options, PeekPart, Program, Progress, Sampler, Saved};
use stackglass_collect::peek_answer::Audience;
use stackglass_profile::Recording;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass record -- ./server                 until it ends, or Ctrl-C
  stackglass record --duration 30s -- ./server  30 s; the server goes on
  stackglass record -o build.glass -- make      make and all it starts
  stackglass record --delay 10ms -- ./batch     fewer samples for a long run
  stackglass record --pid 1234 --duration 10s   a program that runs already

The program keeps its terminal, its input and output, its signals and its
exit status; what stackglass says goes to stderr. Programs it starts are
followed. The recording is written while the program runs: whatever happens,
`stackglass print` reads it up to the last quarter of a second.

Ctrl-C reaches the program as always and the report follows when it has
ended; a second Ctrl-C reports at once although it has not. `stackglass save`
(or SIGUSR2 to stackglass) writes a complete recording beside the growing one
and shows the report so far.";

/// Run a program, or look at one that runs, and see where its time goes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// File for the recording [default: PROGRAM.glass in this folder, replaced each time]
    #[arg(short, long, value_name = "FILE", value_parser = output_file())]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,

    /// Look at the process with this id, which runs already and runs on
    #[arg(long, value_name = "PID", value_parser = process_id, conflicts_with_all = ["command", "no_children"])]
    pid: Option<u32>,

    #[command(flatten)]
    driver: DriverFlag,

    /// Program to run, and its arguments.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What `record` and `cargo stackglass` have in common.
#[derive(Args, Clone, Debug)]
pub(crate) struct SamplingFlags {
    /// Time between two looks at each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    pub(crate) delay: Duration,

    /// Words of memory for samples; sampling stops when they are used up (0: no bound)
    #[arg(long = "n", value_name = "WORDS", default_value = "10000000", value_parser = words)]
    pub(crate) words: u64,

    /// Sample for this long, then report; the program goes on
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub(crate) duration: Option<Duration>,

    /// Begin to sample after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) delay_start: Option<Duration>,

    /// Sample only the program itself, not what it starts
    #[arg(long)]
    pub(crate) no_children: bool,

    /// Wall-time profile: each tick looks at one live async task, running or waiting (at a thread where there are no tasks)
    #[arg(long)]
    pub(crate) walltime: bool,

    /// How long the profile takes that follows SIGUSR1 (a peek), where the program is sampled from inside
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    pub(crate) peek_duration: Duration,

    /// How the program is sampled [default: perf, or ptrace where that is refused; preload for wall-time profiles and programs with the crate in them]
    #[arg(long, value_name = "SAMPLER")]
    pub(crate) sampler: Option<SamplerName>,

    /// No live line and no report
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Who takes the stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SamplerName {
    /// The kernel, by perf events: nothing is in the program
    Perf,
    /// This command, which stops each running thread briefly
    Ptrace,
    /// A library in the program, with a thread of its own
    Preload,
}

impl SamplerName {
    fn sampler(self) -> Sampler {
        match self {
            SamplerName::Perf => Sampler::Perf,
            SamplerName::Ptrace => Sampler::Ptrace,
            SamplerName::Preload => Sampler::Preload,
        }
    }
}

/// A program to be recorded, however it was found.
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) output: PathBuf,
    pub(crate) sampling: SamplingFlags,
}

pub(crate) fn run(flags: Flags) -> Outcome {
    if let Some(pid) = flags.pid {
        return record_pid::record(pid, flags.output, flags.sampling, flags.driver.asked());
    }
    let mut words = flags.command.into_iter();
    let name = words.next().unwrap_or_default();
    let program = Program::find(&name)
        .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
    let output = flags.output.unwrap_or_else(|| default_output(&program.path));
    record(Job {
        program,
        arguments: words.collect(),
        folder: None,
        variables: Vec::new(),
        output,
        sampling: flags.sampling,
    })
}

/// Records a job, shows its report, and returns the program's exit status.
pub(crate) fn record(job: Job) -> Outcome {
    let sampling = job.sampling;
    let options = Options {
        program: job.program,
        arguments: job.arguments,
        folder: job.folder,
        variables: job.variables,
        library: library::unpack,
        sampler: sampling.sampler.map(SamplerName::sampler),
        output: job.output,
        delay: sampling.delay,
        capacity: sampling.words,
        duration: sampling.duration,
        delay_start: sampling.delay_start,
        follow_children: !sampling.no_children,
        peek: sampling.peek_duration,
        walltime: sampling.walltime,
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let mut teller = Teller { live: Live::new(sampling.quiet), quiet: sampling.quiet };
    let end = launch::record(&options, &mut teller).map_err(|error| Failure {
        status: error.program_status().unwrap_or(failure::OWN_FAILURE),
        line: error.to_string(),
    })?;
    Ok(launch::exit_status(end))
}

/// `rg.glass` for `/usr/bin/rg`.
pub(crate) fn default_output(program: &Path) -> PathBuf {
    let mut name = program.file_stem().unwrap_or("recording".as_ref()).to_os_string();
    name.push(".glass");
    name.into()
}

/// Tells people at the terminal what happens.
pub(crate) struct Teller {
    pub(crate) live: Live,
    pub(crate) quiet: bool,
}

impl Teller {
    fn report(&mut self, recording: &Recording, saved: &Saved) {
        self.live.clear();
        if self.quiet {
            return;
        }
        first_screen::to_stderr(recording);
        if saved.totals.is_some() {
            failure::say(&format!("recorded to {}", saved.path.display()));
        }
    }
}

impl Observer for Teller {
    fn progress(&mut self, progress: &Progress) {
        self.live.show(progress);
    }

    fn suspended(&mut self) {
        self.live.clear();
    }

    fn waiting(&mut self, line: &str) {
        if !self.quiet && std::io::stderr().is_terminal() {
            failure::say(&format!("{line}; Ctrl-C ends it"));
        }
    }

    fn note(&mut self, line: &str) {
        self.live.clear();
        failure::say(line);
    }

    fn peek(&mut self, _: u32, part: &PeekPart, audience: &Audience) {
        self.live.clear();
        peek_text::answer(part, audience);
    }

    fn recorded(&mut self, recording: &Recording, saved: &Saved) {
        self.report(recording, saved);
    }

    fn snapshot(&mut self, recording: &Recording, saved: &Saved) {
        self.report(recording, saved);
    }
}
