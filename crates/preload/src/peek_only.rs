//! A program that waits for peeks (`stackglass run`): SIGUSR1 is counted for the launcher, and nothing else is done.
//!
//! There is no thread, no other signal, and no hook for threads or forks: the launcher samples from outside. Forked children
//! share the page with the counts and need no setup.

use stackglass_host::session::Session;
use stackglass_host::{peek, restart};

/// Makes SIGUSR1 a request for a peek, unless the program was started with an action of its own for it.
pub fn begin(session: &Session, with_children: bool) {
    if let Some(requests) = session.requests() {
        // The handler restarts an interrupted call.
        restart::hooks_are_in_place();
        peek::count_in(requests, with_children);
        let _ = peek::install();
    }
}
