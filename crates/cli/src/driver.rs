//! `--sampler` of `peek` and `top`: how running threads of another process are sampled.

use crate::message;
use clap::{Args, ValueEnum};
use stackglass_attach::choice::perf;
use stackglass_attach::driver::RISK;
use stackglass_attach::{Driver, access};

/// The flag.
#[derive(Args, Clone, Debug)]
pub(crate) struct DriverFlag {
    /// How running threads are sampled [default: perf]
    #[arg(long = "sampler", alias = "driver", value_name = "SAMPLER")]
    name: Option<Name>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Name {
    /// The kernel copies the stack (perf events); no thread is stopped
    Perf,
    /// Where perf events are refused: each running thread is stopped. This interrupts system calls: reads and writes may come back short
    Ptrace,
}

impl DriverFlag {
    /// The driver that was given, if any.
    pub(crate) fn driver(&self) -> Option<Driver> {
        self.name.map(|name| match name {
            Name::Ptrace => Driver::Ptrace,
            Name::Perf => Driver::Perf,
        })
    }
}

/// The driver for a process, if the user has `asked` for one: not ptrace where perf events are allowed.
pub(crate) fn harmless_driver(pid: u32, asked: Option<Driver>) -> Option<Driver> {
    let is_needless = || access::check(pid, Driver::Perf).is_ok() && perf(pid).is_ok();
    match asked {
        Some(Driver::Ptrace) if is_needless() => {
            message::print(&format!("perf events are used, as they are allowed here: {RISK}"));
            Some(Driver::Perf)
        }
        asked => asked,
    }
}
