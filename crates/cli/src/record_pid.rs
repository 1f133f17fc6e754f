//! `stackglass record --pid PID`: record a process that runs already, without preparation.

use crate::driver::harmless_driver;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::{Output, default_output_of_process};
use crate::perf_refused;
use crate::recording_observer::RecordingObserver;
use crate::sampling_flags::{SamplerName, SamplingFlags};
use stackglass_attach::Driver;
use stackglass_collect::attached::{self, Options};
use stackglass_collect::walltime;
use stackglass_procfs::process;
use stackglass_procfs::status::process_of;
use std::path::PathBuf;

pub(crate) fn record(pid: u32, output: Option<PathBuf>, sampling: SamplingFlags) -> Outcome {
    let asked = match sampling.sampler {
        None => None,
        Some(SamplerName::Perf) => Some(Driver::Perf),
        Some(SamplerName::Ptrace) => Some(Driver::Ptrace),
        Some(SamplerName::Preload) => {
            let line = "the sampler `preload` starts with its program: `stackglass record --sampler preload -- PROGRAM`";
            return Err(Failure { status: 2, line: line.into() });
        }
    };
    if sampling.allocs.is_some() {
        let line = "allocations are recorded from a program's start (`stackglass record --allocs -- PROGRAM`), or \
                    for a while in a program that was started with `stackglass run` (`stackglass allocs --pid PID`)";
        return Err(Failure { status: 2, line: line.into() });
    }
    let process = process_of(pid);
    let quiet = sampling.quiet;
    if process != pid && !quiet {
        message::print(&format!("{pid} is a thread of process {process}: the whole process is recorded"));
    }
    let output =
        output.map(Output::named).unwrap_or_else(|| default_output_of_process(&process::executable(process)));
    let options = Options {
        pid: process,
        output: output.path().to_owned(),
        delay: sampling.delay,
        capacity: sampling.words,
        duration: sampling.duration,
        delay_start: sampling.delay_start,
        driver: harmless_driver(process, asked),
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let record = if sampling.walltime { walltime::record } else { attached::record };
    record(&options, &mut RecordingObserver::new(quiet)).map_err(|error| perf_refused::of_process(&error))?;
    Ok(0)
}
