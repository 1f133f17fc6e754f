//! `stackglass record --pid PID`: record processes that run already, without preparation.

use crate::chosen_processes::ChosenFlags;
use crate::driver::harmless_driver;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, default_output_of_process};
use crate::perf_refused;
use crate::recording_observer::RecordingObserver;
use crate::sampling_flags::{SamplerName, SamplingFlags};
use stackglass_attach::Driver;
use stackglass_collect::attached::{self, Options};
use stackglass_collect::walltime;
use stackglass_procfs::process;
use std::path::PathBuf;

pub(crate) fn record(chosen: &ChosenFlags, output: Option<PathBuf>, sampling: SamplingFlags) -> Outcome {
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
    let quiet = sampling.quiet;
    // A profile by wall time is of one process.
    let follow_children = !sampling.no_children && !sampling.walltime;
    let mut others = chosen.processes(follow_children, quiet)?;
    let process = others.remove(0);
    if sampling.walltime && !others.is_empty() {
        let line = "--walltime records the tasks of one process: give one id";
        return Err(Failure { status: 2, line: line.into() });
    }
    let output =
        output.map(Output::named).unwrap_or_else(|| default_output_of_process(&process::executable(process)));
    let options = Options {
        pid: process,
        others,
        follow_children,
        output: output.path().to_owned(),
        delay: sampling.delay,
        capacity: sampling.words,
        duration: sampling.duration,
        delay_start: sampling.delay_start,
        driver: harmless_driver(process, asked),
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let record = if sampling.walltime { walltime::record } else { attached::record };
    let mut observer = RecordingObserver::new(quiet).viewing(&options.output, sampling.view);
    record(&options, &mut observer).map_err(|error| perf_refused::of_process(&error))?;
    observer.wait_for_page();
    Ok(0)
}
