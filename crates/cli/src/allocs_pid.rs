//! `stackglass allocs --pid PID`: records allocations of a program that runs already, and shows them.

use crate::failure::Failure;
use crate::message;
use stackglass_collect::allocations::{AllocationSettings, on_request};
use stackglass_profile::{AllocationSampling, Recording};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Records for `duration` or until Ctrl-C, and finds the names. Writes the recording to `output`, if that is given.
pub(crate) fn record(
    pid: u32,
    sampling: AllocationSampling,
    duration: Duration,
    output: Option<&Path>,
) -> Result<Recording, Failure> {
    if std::io::stderr().is_terminal() {
        message::print(&format!("recording allocations of process {pid} for {duration:?}; Ctrl-C ends it"));
    }
    let writer = concat!("stackglass ", env!("CARGO_PKG_VERSION")).into();
    let mut recording =
        on_request::record(pid, AllocationSettings { sampling }, duration, writer).map_err(Failure::new)?;
    stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
    if let Some(output) = output {
        stackglass_files::write(output, &recording).map_err(Failure::new)?;
    }
    Ok(recording)
}
