//! The constructor, which runs before `main` and decides whether this process is sampled, and the destructor.

use crate::own_session::{self, Begin};
use crate::{allocations, children, environment, peek_only, threads};
use core::sync::atomic::Ordering::*;
use stackglass_host::stream_memory::Refused;
use stackglass_host::{confined, fork_guard, peek, restart, system};
use stackglass_sampler::{Forbidden, NotStarted};
use stackglass_wire::{HEAP_BEING_READ, HEAP_NOT_READ, SessionPage, SessionState};

/// Longest wait for the sampler's last tick at the end of the program, ns. The tick takes some 100 µs if the sampler gets a
/// CPU at once.
const LAST_TICK: u64 = 30_000_000;

/// Time between two looks whether the heap snapshot at the end is made, ns.
const SNAPSHOT_CHECK: u64 = 10_000_000;
/// A launcher whose beat does not change for this long has died, ns.
const LONGEST_BEAT: u64 = 5_000_000_000;
/// A launcher that has not noticed the end of the program after this time will not notice it, ns.
const LONGEST_NOTICE: u64 = 10_000_000_000;
/// Longest wait for a snapshot, ns.
const LONGEST_SNAPSHOT: u64 = 600_000_000_000;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn constructor() {
    let Some(session) = own_session::find() else { return allocations::never() };
    let begin = Begin::now();
    let follow = session.page.follow_children.load(Relaxed) != 0;
    if !follow {
        environment::remove_session();
    }
    match SessionState::from_number(session.page.state.load(Acquire)) {
        SessionState::Stopped => {
            // There is no more room for samples of time. Allocations need none.
            allocations::begin(session);
            children::watch();
            return;
        }
        SessionState::Ready => {
            peek_only::begin(session, follow);
            allocations::begin(session);
            children::watch();
            return;
        }
        SessionState::Waiting | SessionState::Sampling => {}
    }
    allocations::begin(session);
    if session.page.sampled_from_outside.load(Relaxed) != 0 {
        children::watch();
        return;
    }
    // For benchmarks: the same signals and mailboxes, but no walks.
    stackglass_sampler::set_empty_handler(environment::has(c"STACKGLASS_BENCH_HANDLER", c"empty"));
    // For tests: mappings are found as on kernels without PROCMAP_QUERY.
    stackglass_sampler::force_text_maps(environment::has(c"STACKGLASS_TEST_MAPS", c"text"));
    // For tests: running threads are signalled as under a filter, or have stacks as where perf events are refused.
    if environment::has(c"STACKGLASS_TEST_TIMERS", c"none") {
        stackglass_sampler::forbid_timers(Forbidden::All);
    } else if environment::has(c"STACKGLASS_TEST_TIMERS", c"rare") {
        stackglass_sampler::forbid_timers(Forbidden::Frequent);
    }
    threads::prepare();
    match own_session::make_stream(begin.at) {
        Ok(stream) => {
            if let Err(why) = own_session::launch(begin, Some(stream), children::make_stream, 0) {
                report_unless_stopped(why);
            }
        }
        // A session that has ended has removed its folder. This is no error.
        Err(Refused { errno: libc::ENOENT, .. }) => return,
        Err(why) => report_unless_stopped(why.into()),
    }
    restart::hooks_are_in_place();
    children::watch();
    let _ = peek::install();
}

/// Makes no system call unless this process has a sampler, or waits for its heap to be read: a filter that this library does not
/// know of may end the program.
extern "C" fn destructor() {
    let samples = stackglass_sampler::is_running();
    let waits = waits_for_heap_snapshot();
    // A child of `vfork` that calls `exit` runs this with its parent's memory.
    if !(samples || waits.is_some()) || confined::is_confined() || !fork_guard::is_own_process() {
        return;
    }
    stackglass_sampler::stop(LAST_TICK);
    if let Some(page) = waits {
        stackglass_heap::end();
        wait_for_heap_snapshot(page);
    }
}

/// The session page, if the launcher saves the heap of this program at its end (`--heap-at`).
fn waits_for_heap_snapshot() -> Option<&'static SessionPage> {
    let page = own_session::get()?.page;
    let is_program = fork_guard::sampled_process().is_some_and(|own| own.pid == page.only_pid.load(Relaxed));
    let waits = page.heap_at_exit.load(Acquire) != HEAP_NOT_READ && page.allocations.load(Relaxed) != 0;
    // Without tables, as where no large file may be made, the launcher does not notice the end.
    let is_recorded = stackglass_heap::tables().is_some();
    // A copy of shadow memory would take minutes.
    (is_program && waits && is_recorded && !allocations::has_shadow_memory()).then_some(page)
}

/// Waits while the launcher saves the heap of this program, but not for one that has died.
fn wait_for_heap_snapshot(page: &SessionPage) {
    let began = system::now();
    let (mut beat, mut beat_at) = (page.beat.load(Relaxed), began);
    loop {
        let state = page.heap_at_exit.load(Acquire);
        let now = system::now();
        let longest = match state {
            HEAP_NOT_READ => return,
            HEAP_BEING_READ => LONGEST_SNAPSHOT,
            _ => LONGEST_NOTICE,
        };
        let last = page.beat.load(Relaxed);
        if last != beat {
            (beat, beat_at) = (last, now);
        }
        if now > beat_at + LONGEST_BEAT || now > began + longest {
            return;
        }
        system::sleep_until(&page.heap_at_exit, state, now + SNAPSHOT_CHECK);
    }
}

/// Writes one line to stderr, if that is open for writing.
fn report_unless_stopped(why: NotStarted) {
    let NotStarted::Refused(Refused { step, errno }) = why else { return };
    let line = system::PathText::<256>::new()
        .text(b"stackglass: process ")
        .number(system::process_id() as u64)
        .text(b" runs unsampled: the system refused ")
        .text(step.as_bytes())
        .text(b" (error ")
        .number(errno.unsigned_abs() as u64)
        .text(b")\n");
    // SAFETY: an all-zero stat is a value; the kernel reads and writes within the live buffers.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let sane = libc::fstat(2, &mut stat) == 0
            && matches!(stat.st_mode & libc::S_IFMT, libc::S_IFCHR | libc::S_IFIFO | libc::S_IFREG)
            && libc::fcntl(2, libc::F_GETFL) & libc::O_ACCMODE != libc::O_RDONLY;
        if sane {
            libc::write(2, line.as_bytes().as_ptr().cast(), line.as_bytes().len());
        }
    }
}
