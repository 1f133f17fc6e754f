//! A task in the table that a process has of its wrapped futures.

use stackglass_profile::Nanos;
use std::sync::Arc;

/// A task in the process's table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WrappedTask {
    /// Its id: unique in the process, but not that of a runtime.
    pub id: u64,
    /// Address of its future; 0 before its first poll.
    pub future: u64,
    /// Address of the future's vtable.
    pub vtable: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Where it was created.
    pub created: Option<(Arc<str>, u32)>,
    /// Kernel id of the thread that polls it.
    pub polled_by: Option<u32>,
    /// How long it has waited, if polls are timed.
    pub waited: Option<Nanos>,
}
