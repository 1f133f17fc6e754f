//! `--stop` and `--interrupt-calls`: how a process is made to stand still.

use clap::Args;

/// The flags of every verb that copies a process.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CopyFlags {
    /// Read the process itself, which stands still meanwhile, instead of a copy
    #[arg(long)]
    pub(crate) stop: bool,

    /// Stop threads inside system calls as well: these may return early, with less data. For processes that are refused otherwise
    #[arg(long)]
    pub(crate) interrupt_calls: bool,
}
