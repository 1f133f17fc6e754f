//! The constructor: runs before the program's `main` and decides whether this process is sampled.

use crate::{children, environment, next, ready, threads};
use core::sync::atomic::Ordering::*;
use stackglass_host::image::{ProcessImage, Refused};
use stackglass_host::session::{self, Session};
use stackglass_host::signal::Placement;
use stackglass_host::{fork_guard, peek, restart, system};
use stackglass_sampler::{NotStarted, Orders, Plan};
use stackglass_wire::SessionState;
use std::sync::OnceLock;

/// The session of this process, once it takes part in one.
static SESSION: OnceLock<Session> = OnceLock::new();

/// How long the end of the program waits at most for the sampler's last look, ns. It takes some 100 us where the
/// sampler gets a processor at once.
const LAST_LOOK: u64 = 30_000_000;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn constructor() {
    if !is_glibc() {
        return;
    }
    let (start, start_cpu) = (system::now(), system::own_cpu());
    let Some(session) = environment::session_folder().and_then(session::open) else { return };
    let follow = session.page.follow_children.load(Relaxed) != 0;
    if !follow {
        if session.page.only_pid.load(Relaxed) != system::process_id() {
            return;
        }
        environment::forget_us();
    }
    match SessionState::from_number(session.page.state.load(Acquire)) {
        SessionState::Stopped => return,
        SessionState::Ready => return ready::begin(&session, follow),
        SessionState::Waiting | SessionState::Sampling => {}
    }
    if SESSION.set(session).is_err() {
        return;
    }
    // For benchmarks: the same signals and letters, but nothing is walked.
    stackglass_sampler::set_empty_handler(environment::has(c"STACKGLASS_BENCH_HANDLER", c"empty"));
    // For tests: mappings are found as on kernels that cannot be asked for one.
    stackglass_sampler::force_text_maps(environment::has(c"STACKGLASS_TEST_MAPS", c"text"));
    threads::prepare();
    match make_image(start) {
        Ok(image) => {
            if let Err(why) = launch((start, start_cpu), Some(image), 0) {
                complain_unless_stopped(why);
            }
        }
        // A session that is over takes its folder away: nothing to complain about.
        Err(Refused { errno: libc::ENOENT, .. }) => return,
        Err(why) => complain_unless_stopped(why.into()),
    }
    restart::hooks_are_in_place();
    children::watch();
    ready_for_peeks();
}

/// SIGUSR1 becomes a request to look, unless the program was started with an action of its own for it.
pub fn ready_for_peeks() {
    let _ = peek::install();
}

/// Whether the program's C library is the one this library is made for. The environment is handed down to programs of
/// others as well (musl's), which load us and are to run as if they had not.
fn is_glibc() -> bool {
    // SAFETY: the name ends with a zero byte.
    unsafe { !libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()).is_null() }
}

extern "C" fn destructor() {
    // A child of `vfork` that calls `exit` comes by here with its parent's memory.
    if fork_guard::is_own_process() {
        stackglass_sampler::stop(LAST_LOOK);
    }
}

/// The session this process takes part in.
pub fn session() -> Option<&'static Session> {
    SESSION.get()
}

/// Makes this process's file in the session folder.
pub fn make_image(start: u64) -> Result<ProcessImage, Refused> {
    let session = session().ok_or(Refused { step: "a session", errno: libc::ENOENT })?;
    ProcessImage::in_folder(session.folder.as_bytes(), start, session.page.stream_bytes.load(Relaxed))
}

/// Starts the sampler of this process, which began at `start` (and had used that much CPU time then); without an image
/// it makes one itself after `patience` ns.
pub fn launch(
    (start, start_cpu): (u64, u64),
    image: Option<ProcessImage>,
    patience: u64,
) -> Result<(), NotStarted> {
    let session = session().ok_or(Refused { step: "a session", errno: libc::ENOENT })?;
    let create_thread = next::pthread_create().ok_or(Refused { step: "a thread", errno: libc::ENOSYS })?;
    stackglass_sampler::launch(Plan {
        orders: Orders::Session(session.page),
        signal: signal_of(session),
        placement: Placement::Alternate,
        make_image: children::make_image,
        image,
        start,
        start_cpu: Some(start_cpu),
        patience,
        create_thread,
    })
    .map(drop)
}

/// The signal that the launcher asks for: SIGURG, unless it is SIGPROF.
fn signal_of(session: &Session) -> i32 {
    match session.page.signal.load(Relaxed) as i32 {
        libc::SIGPROF => libc::SIGPROF,
        _ => libc::SIGURG,
    }
}

/// One line on stderr, when there is one.
fn complain_unless_stopped(why: NotStarted) {
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
