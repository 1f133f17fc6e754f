//! `stackglass record --pid PID`: record a process that runs already and knows nothing of us.

use crate::Outcome;
use crate::failure::{self, Failure};
use crate::live::Live;
use crate::record::{SamplingFlags, Teller, default_output};
use stackglass_attach::Driver;
use stackglass_collect::attached::{self, Options};
use stackglass_procfs::process;
use stackglass_procfs::status::process_of;
use std::path::{Path, PathBuf};

pub(crate) fn record(
    pid: u32,
    output: Option<PathBuf>,
    sampling: SamplingFlags,
    driver: Option<Driver>,
) -> Outcome {
    if sampling.walltime {
        let line = "--walltime looks at async tasks, which only the program itself knows: start it with \
                    `stackglass record --walltime -- PROGRAM` (or leave --walltime out)";
        return Err(Failure { status: 2, line: line.into() });
    }
    let process = process_of(pid);
    let quiet = sampling.quiet;
    if process != pid && !quiet {
        failure::say(&format!("{pid} is a thread of process {process}: all of that is recorded"));
    }
    let options = Options {
        pid: process,
        output: output.unwrap_or_else(|| default_name(process)),
        delay: sampling.delay,
        capacity: sampling.words,
        duration: sampling.duration,
        delay_start: sampling.delay_start,
        driver,
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let mut teller = Teller { live: Live::new(quiet), quiet };
    attached::record(&options, &mut teller).map_err(Failure::new)?;
    Ok(0)
}

/// `server.glass` for a process that runs `/usr/bin/server`.
fn default_name(pid: u32) -> PathBuf {
    let executable = process::executable(pid);
    default_output(if executable.as_os_str().is_empty() { Path::new("process") } else { &executable })
}
