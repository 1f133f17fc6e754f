//! `--driver`: how running threads of a foreign process are made to show their stacks.

use clap::{Args, ValueEnum};
use stackglass_attach::Driver;

/// The flag.
#[derive(Args, Clone, Debug)]
pub(crate) struct DriverFlag {
    /// How running threads of a foreign process show their stacks [default: perf where it is allowed]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<Name>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Name {
    /// Each stands for some tens of microseconds; needs the right to trace
    Ptrace,
    /// The kernel copies them; needs root, CAP_PERFMON or kernel.perf_event_paranoid of at most 1
    Perf,
}

impl DriverFlag {
    /// What was asked for.
    pub(crate) fn asked(&self) -> Option<Driver> {
        self.driver.map(|name| match name {
            Name::Ptrace => Driver::Ptrace,
            Name::Perf => Driver::Perf,
        })
    }
}
