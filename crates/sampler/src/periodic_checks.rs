//! Checks that are not made at every tick: threads, modules, thread names, and whether the handler is still installed.

use crate::orders::Orders;
use crate::parts::Parts;
use crate::threads::discovery;
use core::sync::atomic::Ordering::*;
use stackglass_host::{alternate_stack, signal};
use stackglass_wire::ImageFlags;

/// How often the link count of the task folder is read, ns.
const LINKS_EVERY: u64 = 10_000_000;
/// How often names, modules and the handler are checked, ns.
const CHECKS_EVERY: u64 = 100_000_000;
/// How often all threads are listed, ns for each thread. This is a safeguard: a thread that starts changes the link count, or
/// replaces one that is found to have ended.
const SCAN_EVERY_PER_THREAD: u64 = 1_000_000;
/// Names read again at a time.
const NAMES_AT_A_TIME: usize = 8;

/// When each check is due.
#[derive(Default)]
pub(crate) struct PeriodicChecks {
    links: u64,
    links_at: u64,
    checks_at: u64,
    scan_at: u64,
    /// The thread whose name is read next.
    next_name: usize,
}

impl PeriodicChecks {
    /// Sampling begins.
    pub(crate) fn begin(&mut self, orders: &Orders, now: u64) {
        check_handlers(orders);
        (self.links_at, self.checks_at) = (now + LINKS_EVERY, now + CHECKS_EVERY);
        self.scan_at = self.checks_at;
    }

    /// Makes the checks that are due.
    pub(crate) fn run(&mut self, parts: &mut Parts, orders: &Orders, now: u64) {
        let mut scan = core::mem::take(&mut parts.due.scan);
        if now >= self.links_at {
            self.links_at = now + LINKS_EVERY;
            let links = parts.folder.links().unwrap_or(0);
            scan |= links != self.links;
            self.links = links;
        }
        let library_closed = parts.shared.guest.modules_changed.swap(0, AcqRel) != 0;
        if library_closed || core::mem::take(&mut parts.due.modules) {
            update_modules(parts, now);
        }
        if now >= self.scan_at {
            self.scan_at = now + CHECKS_EVERY.max(parts.threads.len() as u64 * SCAN_EVERY_PER_THREAD);
            scan = true;
        }
        if now >= self.checks_at {
            self.checks_at = now + CHECKS_EVERY;
            update_modules(parts, now);
            check_handlers(orders);
            if !signal::is_ours() && !parts.signals.is_lost {
                parts.signals.is_lost = true;
                parts.shared.control.image.fetch_or(ImageFlags::SIGNAL_LOST, AcqRel);
            }
            self.read_names(parts, now);
        }
        if scan {
            discovery::scan(parts, now, false);
        }
    }

    /// Reads the names of new threads again, and those of a few others in turn.
    fn read_names(&mut self, parts: &mut Parts, now: u64) {
        let n = parts.threads.len();
        let mut turns = NAMES_AT_A_TIME;
        for i in 0..n {
            let index = parts.threads.nth(i);
            let thread = parts.threads.get(index);
            let in_turn = turns > 0 && i >= self.next_name;
            if thread.was_named && !in_turn {
                continue;
            }
            if in_turn {
                turns -= 1;
                self.next_name = i + 1;
            }
            thread.was_named = true;
            if let Some(name) = parts.folder.name(thread.header.tid)
                && name != thread.header.name
            {
                parts.events.rename(&mut thread.header, now, name);
            }
        }
        if self.next_name >= n {
            self.next_name = 0;
        }
    }
}

/// Pushes modules that came or went.
pub(crate) fn update_modules(parts: &mut Parts, now: u64) {
    parts.modules.update(parts.shared.control, &mut parts.events, now);
}

/// Looks for handlers on alternate stacks. Under a launcher the preload library's hooks see them as they are installed.
fn check_handlers(orders: &Orders) {
    if let Orders::Own { .. } = orders {
        alternate_stack::look_for_handlers();
    }
}
