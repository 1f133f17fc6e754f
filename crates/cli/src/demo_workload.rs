//! The program behind `stackglass demo`, a hidden verb of the same executable.

use crate::values::duration;
use clap::Args;
use std::time::Duration;

/// Run the bundled program.
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// How long it runs
    #[arg(long, default_value = "3s", value_parser = duration)]
    time: Duration,
}

pub(crate) fn run(flags: &Flags) -> i32 {
    stackglass_demo::run(flags.time);
    0
}
