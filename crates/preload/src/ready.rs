//! A program that waits to be peeked at (`stackglass run`): SIGUSR1 is counted for the launcher, and nothing else is done.
//!
//! No thread, no other signal, no hook at threads or forks: the launcher looks from outside. Forked children share the page
//! in which requests are counted, so that nothing has to be begun in them.

use crate::begin;
use stackglass_host::session::Session;
use stackglass_host::{peek, restart};

/// Makes SIGUSR1 a request to look, unless the program was started with an action of its own for it.
pub fn begin(session: &Session, with_children: bool) {
    if let Some(requests) = session.requests() {
        // The call that a request interrupts is put back.
        restart::hooks_are_in_place();
        peek::count_in(requests, with_children);
        begin::ready_for_peeks();
    }
}
