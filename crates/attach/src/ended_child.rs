//! For tests: a process that has ended and has no memory, but that its parent has not waited for.

use stackglass_procfs::Status;
use std::process::{Child, Command};

/// Starts a process, and returns once it has ended.
pub(crate) fn ended_child() -> Child {
    let child = Command::new("true").spawn().unwrap();
    while !Status::read(child.id()).is_some_and(|status| status.has_ended()) {
        std::thread::yield_now();
    }
    child
}
