//! The sampler's orders: whether to sample, how often, and what.

use core::sync::atomic::Ordering::*;
use stackglass_wire::{SessionPage, SessionState};

/// Where the sampler's orders come from.
#[derive(Clone, Copy)]
pub enum Orders {
    /// From a launcher, through its session page.
    Session(&'static SessionPage),
    /// From this process: sample until [`stop`](crate::stop).
    Own {
        /// Time between two ticks, ns.
        delay: u64,
        /// Whether this is a wall-time profile.
        walltime: bool,
    },
}

/// The shortest and the longest delay, ns.
const DELAYS: core::ops::RangeInclusive<u64> = 20_000..=10_000_000_000;

impl Orders {
    pub(crate) fn state(&self) -> SessionState {
        match self {
            Orders::Session(page) => SessionState::from_number(page.state.load(Acquire)),
            Orders::Own { .. } => SessionState::Sampling,
        }
    }

    /// Time between two ticks, ns: from 20 µs to 10 s.
    pub fn delay(&self) -> u64 {
        let delay = match self {
            Orders::Session(page) => page.delay_ns.load(Relaxed),
            Orders::Own { delay, .. } => *delay,
        };
        delay.clamp(*DELAYS.start(), *DELAYS.end())
    }

    pub(crate) fn walltime(&self) -> bool {
        match self {
            Orders::Session(page) => page.walltime.load(Relaxed) != 0,
            Orders::Own { walltime, .. } => *walltime,
        }
    }

    /// The number that the launcher keeps changing while it lives; `None` without a launcher.
    pub(crate) fn heartbeat(&self) -> Option<u64> {
        match self {
            Orders::Session(page) => Some(page.beat.load(Relaxed)),
            Orders::Own { .. } => None,
        }
    }
}
