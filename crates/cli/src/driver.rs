//! `--driver`: how running threads of another process are sampled.

use clap::{Args, ValueEnum};
use stackglass_attach::Driver;

/// The flag.
#[derive(Args, Clone, Debug)]
pub(crate) struct DriverFlag {
    /// How running threads of another process are sampled [default: perf where it is allowed]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<Name>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Name {
    /// Each thread stops for some tens of microseconds; needs permission to trace
    Ptrace,
    /// The kernel copies the stack; needs root, CAP_PERFMON or kernel.perf_event_paranoid <= 1
    Perf,
}

impl DriverFlag {
    /// The driver that was given, if any.
    pub(crate) fn driver(&self) -> Option<Driver> {
        self.driver.map(|name| match name {
            Name::Ptrace => Driver::Ptrace,
            Name::Perf => Driver::Perf,
        })
    }
}
