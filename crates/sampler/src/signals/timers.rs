//! Stacks of running threads by timers: no system call comes back short.
//!
//! Each thread that runs has two timers. The frequent one ([`UserTimer`]) meets it in its own code only. The rare one
//! ([`CallTimer`]) meets it wherever it is, and waits for the end of a system call. [`Attribution`] says how the thread's CPU time
//! is divided among both.
//!
//! Descriptors of frequent timers lie in the sampler's own table, so that the program neither sees nor closes them. Without such a
//! table, and where perf events are refused, threads have the rare timer alone. It needs no right, and stacks come at the kernel's
//! ticks. Where a filter might not allow timers, or the kernel has none that spare calls, running threads are signalled.

use crate::parts::Parts;
use crate::signals::attribution::Attribution;
use crate::signals::held_back::Lateness;
use crate::signals::open_timers::RESTLESS_PERIOD;
use crate::signals::send;
use crate::signals::thread_timers::{ThreadTimers, close};
use stackglass_host::call_timer::CallTimer;
use stackglass_host::mailbox::{Hit, HitTimer, MAILBOXES};
use stackglass_host::user_timer::{SHORTEST, UserTimer};
use stackglass_host::{Guest, SlotIndex, signal};
use stackglass_proc_text::Sleep;
use stackglass_wire::{Counter, cut};

/// Interval of rare timers, ns of CPU time: a bit less than a tick of most kernels, so that each tick counts.
const RARE: u64 = 3_000_000;
/// Stacks after which a frequent timer gets another period.
const SAME_PERIOD: u32 = 32;
/// CPU time after which the turns of a thread are counted again, ns.
const TURNS_EVERY: u64 = 4_000_000;
/// With more turns than this for each delay, a thread is restless; with less than half of it, it is no longer.
const MANY_TURNS: u64 = 6;
/// With so many times more, a restless thread has no frequent timer at all: a tenth of its time would go to the timer.
const TOO_MANY: u64 = 7;
/// From so much CPU time without a stack on, timers are opened anew: the kernel refuses signals of who has changed the user, ns.
const REOPENED: u64 = 100_000_000;
/// A thread that holds back its signal for so long blocks it: handlers of stacks take less, ns of CPU time.
const LONG_BLOCKED: u64 = 500_000;
/// A thread that ends without a stack for so long ends in a system call, ns of CPU time.
const LONG_CALL: u64 = 20_000_000;
/// Mailboxes that are kept ready for handlers: in the first tick, each CPU may need eight.
const READY: usize = 32;

fn open_user(guest: &Guest, tid: u32, index: SlotIndex, period: u64, signal: i32) -> Result<UserTimer, i32> {
    let user = UserTimer::open(tid, period, signal)?;
    guest.timers.insert(user.number(), index);
    if let Err(errno) = user.start() {
        guest.timers.remove(user.number());
        user.close();
        return Err(errno);
    }
    Ok(user)
}

/// Opens a thread's timers.
///
/// # Errors
/// The errno: ESRCH if the thread has ended.
fn open(parts: &mut Parts, index: SlotIndex, signal: i32) -> Result<(), i32> {
    let (guest, delay, tick) = (parts.shared.guest, parts.schedule.delay, parts.schedule.tick);
    let place = parts.timers.make_room(parts.threads, guest, tick).ok_or(libc::EMFILE)?;
    let random = &mut parts.timers.random;
    // A short life is met as well. The first period lasts until the first stack is read.
    let first = SHORTEST.max(delay / 8 + random.below(delay / 8));
    let has_frequent = parts.timers.has_frequent;
    let rare = if has_frequent { RARE.max(delay) } else { delay };
    let first_rare = random.below(rare);
    let thread = parts.threads.get(index);
    let tid = thread.header.tid;
    let user = match has_frequent.then(|| open_user(guest, tid, index, first, signal)) {
        Some(Ok(user)) => Some(user),
        Some(Err(libc::ESRCH)) => return Err(libc::ESRCH),
        _ => None,
    };
    let call = match thread.waits_for_rings {
        false => CallTimer::start(tid, index, signal, first_rare, rare).ok(),
        true => None,
    };
    if user.is_none() && call.is_none() {
        return Err(libc::EAGAIN);
    }
    let mut attribution = Attribution::default();
    attribution.start(thread.time.account.cpu());
    thread.timers = Some(ThreadTimers {
        user,
        call,
        signal,
        attribution,
        is_restless: false,
        turns: 0,
        turns_at: 0,
        stacks: SAME_PERIOD,
        silent: 0,
        check_at: delay * 2,
        seems_blocked: None,
        is_blocked: false,
        ran_at: tick,
    });
    parts.timers.threads[place] = u32::from(index.0) + 1;
    Ok(())
}

/// A thread has run `ran` ns since the last observation, and runs. Sees to it that it has timers, as far as it may be signalled, and
/// finds out why they are silent. What it ran becomes an unsampled sample if there is no hope for a stack.
pub(crate) fn watch(parts: &mut Parts, index: SlotIndex, now: u64, ran: u64) {
    let shared = parts.shared;
    if let Some((reason, counter)) = send::reason_against(parts, index, now) {
        close(&mut parts.threads.get(index).timers, shared.guest);
        shared.count(counter);
        return send::push_unsampled(parts, index, now, reason);
    }
    let Some(signal) = signal::installed() else { return };
    let thread = parts.threads.get(index);
    if thread.timers.is_some_and(|timers| timers.signal != signal) {
        close(&mut thread.timers, shared.guest);
    }
    let Some(timers) = &mut thread.timers else {
        return match open(parts, index, signal) {
            Ok(()) => {}
            Err(libc::ESRCH) => shared.count(Counter::ThreadGone),
            // Its turn comes.
            Err(libc::EMFILE) => shared.count(Counter::QueueFull),
            Err(_) => {
                shared.count(Counter::QueueFull);
                send::push_unsampled(parts, index, now, cut::NOT_TAKEN);
            }
        };
    };
    timers.ran_at = parts.schedule.tick;
    timers.silent += ran;
    set_pace(parts, index);
    let thread = parts.threads.get(index);
    let Some(timers) = &mut thread.timers else { return };
    if timers.silent >= timers.check_at || timers.seems_blocked.is_some() {
        let state = parts.folder.signal_state(thread.header.tid, signal).unwrap_or_default();
        let since = timers.seems_blocked.unwrap_or(timers.silent);
        // In its handler the thread blocks the signal, and may hold back that of the other timer. It would have left it meanwhile. Between
        // two handlers of the program that block it, no signal may have come.
        let is_long = state.is_pending && timers.silent.saturating_sub(since) >= LONG_BLOCKED;
        let is_blocked = state.is_blocked && (timers.is_blocked || is_long);
        timers.seems_blocked = state.is_blocked.then_some(since);
        if is_blocked && !timers.is_blocked {
            shared.count(Counter::Blocked);
            thread.ever_blocked = true;
        }
        timers.is_blocked = is_blocked;
        if timers.silent >= timers.check_at {
            timers.attribution.overdue(state.is_held_back());
            timers.check_at = timers.silent.saturating_mul(2);
            if !state.is_blocked && timers.silent >= REOPENED {
                shared.count(Counter::TimedOut);
                let silent = *timers;
                close(&mut thread.timers, shared.guest);
                if open(parts, index, signal).is_ok()
                    && let Some(timers) = &mut parts.threads.get(index).timers
                {
                    let ThreadTimers { attribution, silent, check_at, .. } = silent;
                    *timers = ThreadTimers { attribution, silent, check_at, ..*timers };
                }
                return;
            }
        }
        if is_blocked {
            send::push_unsampled(parts, index, now, cut::BLOCKED);
        }
    }
}

/// A stack of the thread has come: whether that is late.
pub(crate) fn heard(parts: &mut Parts, hit: &Hit) -> Lateness {
    let (index, delay) = (hit.slot, parts.schedule.delay);
    let Some(timers) = &mut parts.threads.get(index).timers else { return Lateness::None };
    let period = if timers.is_restless { delay.max(RESTLESS_PERIOD) } else { delay };
    // The rare timer alone has no period that is known: that of the kernel's ticks.
    let lateness = timers.attribution.heard(hit.cpu, timers.user.map(|_| period));
    // Also of a restless thread, whose signals may all come where it restores its mask: nothing else shows that.
    (timers.silent, timers.check_at) = (0, delay * 2);
    timers.seems_blocked = timers.is_blocked.then_some(0);
    timers.stacks += u32::from(hit.timer == HitTimer::User);
    set_pace(parts, index);
    lateness
}

/// Gives a thread's frequent timer another period now and then, and a long one if the thread gets CPUs often, unless it blocks the signal
/// often: which stacks are late is known by a short one only.
fn set_pace(parts: &mut Parts, index: SlotIndex) {
    let thread = parts.threads.get(index);
    let (cpu, delay) = (thread.time.account.cpu(), parts.schedule.delay);
    let Some(timers) = thread.timers else { return };
    let (ran, mut is_restless) = (cpu.saturating_sub(timers.turns_at), timers.is_restless);
    if ran >= TURNS_EVERY
        && let Some(turns) = parts.turns(index)
        && let Some(timers) = &mut parts.threads.get(index).timers
    {
        if timers.turns_at > 0 {
            let many = if is_restless { MANY_TURNS / 2 } else { MANY_TURNS };
            let turns = turns.saturating_sub(timers.turns).saturating_mul(delay) / ran;
            let holds_back = timers.attribution.holds_back();
            is_restless = turns > many && !holds_back;
            if turns > MANY_TURNS * TOO_MANY
                && !holds_back
                && let Some(user) = timers.user.take()
            {
                parts.shared.guest.timers.remove(user.number());
                user.close();
            }
        }
        (timers.turns, timers.turns_at) = (turns, cpu);
    }
    if is_restless != timers.is_restless || timers.stacks > SAME_PERIOD {
        let period = parts.timers.period(delay, is_restless);
        let thread = parts.threads.get(index);
        if let Some(timers) = &mut thread.timers {
            (timers.stacks, timers.is_restless) = (0, is_restless);
            match timers.user {
                Some(user) => user.set_period(period),
                None if is_restless || !parts.timers.has_frequent => {}
                None => {
                    timers.user =
                        open_user(parts.shared.guest, thread.header.tid, index, period, timers.signal).ok()
                }
            }
        }
    }
}

/// A thread waits in `io_uring_enter`, which a rare timer would end: it has none from now on.
pub(crate) fn avoid_rings(parts: &mut Parts, index: SlotIndex) {
    let thread = parts.threads.get(index);
    thread.waits_for_rings = true;
    if let Some(call) = thread.timers.as_mut().and_then(|timers| timers.call.take()) {
        call.delete();
    }
}

/// A thread was found asleep.
pub(crate) fn found_asleep(parts: &mut Parts, index: SlotIndex, sleep: &Sleep) {
    if sleep.call.is_some_and(|call| call.number == libc::SYS_io_uring_enter) {
        avoid_rings(parts, index);
    }
}

/// The thread ends, or the recording does. What it ran in a long call that has not ended has no stack.
pub(crate) fn finish(parts: &mut Parts, index: SlotIndex) {
    let thread = parts.threads.get(index);
    if thread.timers.is_some_and(|timers| timers.silent >= LONG_CALL && !timers.is_blocked) {
        let now = thread.time.account.until();
        send::push_unsampled(parts, index, now, cut::IN_CALL);
    }
    close(&mut parts.threads.get(index).timers, parts.shared.guest);
}

/// Keeps some mailboxes ready for handlers. To be called before the first tick as well.
pub(crate) fn prepare_mailboxes(parts: &mut Parts) {
    let mailboxes = &parts.shared.guest.mailboxes;
    // Signals for sleeping threads, and earlier runs, prepare some as well.
    let others = mailboxes[parts.timers.mailboxes..].iter().take_while(|mailbox| mailbox.is_prepared());
    parts.timers.mailboxes += others.count();
    // Before the first tick, all samples are those of an earlier run.
    let is_first = parts.schedule.tick <= 1;
    (0..parts.timers.mailboxes)
        .filter(|number| parts.signals.thread_of(*number).is_none())
        .for_each(|number| mailboxes[number].discard_unread(is_first));
    let known = parts.timers.mailboxes;
    let mut ready = mailboxes[..known].iter().filter(|mailbox| mailbox.is_claimable()).count();
    while ready < READY && parts.timers.mailboxes < MAILBOXES {
        let mailbox = &mailboxes[parts.timers.mailboxes];
        mailbox.prepare();
        ready += usize::from(mailbox.is_claimable());
        parts.timers.mailboxes += 1;
    }
}
