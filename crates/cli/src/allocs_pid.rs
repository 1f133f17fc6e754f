//! `stackglass allocs --pid PID`: records allocations of a program that runs already, and shows them.

use crate::failure::Failure;
use crate::message;
use stackglass_collect::allocations::on_request::AskError;
use stackglass_collect::allocations::unprepared::UnpreparedError;
use stackglass_collect::allocations::{AllocationSettings, on_request, unprepared};
use stackglass_profile::{AllocationSampling, Recording};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Records for `duration` or until Ctrl-C, and finds the names. Writes the recording to `output`, if that is given.
pub(crate) fn record(
    pid: u32,
    sampling: Option<AllocationSampling>,
    duration: Duration,
    output: Option<&Path>,
) -> Result<Recording, Failure> {
    if std::io::stderr().is_terminal() {
        message::print(&format!("recording allocations of process {pid} for {duration:?}; Ctrl-C ends it"));
    }
    let writer = || concat!("stackglass ", env!("CARGO_PKG_VERSION")).into();
    let settings = AllocationSettings { sampling: sampling.unwrap_or(AllocationSampling::Every) };
    let mut recording = match on_request::record(pid, settings, duration, writer()) {
        Err(AskError::NotReady(_)) => unprepared(pid, sampling, duration, writer())?,
        recorded => recorded.map_err(Failure::new)?,
    };
    stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
    if let Some(output) = output {
        stackglass_files::write(output, &recording).map_err(Failure::new)?;
    }
    Ok(recording)
}

/// Records a process that was not started with `stackglass run`.
fn unprepared(
    pid: u32,
    sampling: Option<AllocationSampling>,
    duration: Duration,
    writer: String,
) -> Result<Recording, Failure> {
    if sampling.is_some() {
        return Err(Failure::new(format!(
            "--rate is for processes that were started with `stackglass run`: process {pid} was not, and all its allocations are counted"
        )));
    }
    unprepared::record(pid, duration, writer).map_err(|error| match error {
        UnpreparedError::Refused(_) | UnpreparedError::Events(_) => {
            Failure::new(format!("{}, or use this command as root ({error})", AskError::NotReady(pid)))
        }
        error => Failure::new(error),
    })
}
