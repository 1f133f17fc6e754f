//! The timers of one thread, and what is known of the stacks that they bring.

use crate::signals::attribution::Attribution;
use stackglass_host::Guest;
use stackglass_host::call_timer::CallTimer;
use stackglass_host::user_timer::UserTimer;

/// The timers of one thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTimers {
    pub(super) user: Option<UserTimer>,
    pub(super) call: Option<CallTimer>,
    /// The signal they send.
    pub(super) signal: i32,
    /// How its time is divided.
    pub(crate) attribution: Attribution,
    /// Gets CPUs so often that its frequent timer has a long period.
    pub(super) is_restless: bool,
    /// How often it had got a CPU, when its clock showed `turns_at`.
    pub(super) turns: u64,
    pub(super) turns_at: u64,
    /// Stacks of the frequent timer since it got its period.
    pub(super) stacks: u32,
    /// CPU time since the last stack.
    pub(super) silent: u64,
    /// Once it has been silent for so long, its mask is read; and from then on, whenever that has doubled.
    pub(super) check_at: u64,
    /// The value of `silent` when its mask was first found to have the signal, if it had it at all observations since.
    pub(super) seems_blocked: Option<u64>,
    /// It blocks the signal: a stack that comes is that of the place where the mask is restored.
    pub(crate) is_blocked: bool,
    /// The tick at which it was last seen to run.
    pub(super) ran_at: u64,
}

/// Ends a thread's timers, if it has any.
pub(crate) fn close(timers: &mut Option<ThreadTimers>, guest: &Guest) {
    let Some(ThreadTimers { user, call, .. }) = timers.take() else { return };
    if let Some(user) = user {
        guest.timers.remove(user.number());
        user.close();
    }
    if let Some(call) = call {
        call.delete();
    }
}
