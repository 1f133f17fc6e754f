//! The session of this process: its file in the session folder, and its sampler.

use crate::{allocations, environment, inherited_filters, real_functions};
use core::sync::atomic::Ordering::*;
use stackglass_host::session::{self, Session};
use stackglass_host::signal::Placement;
use stackglass_host::stream_memory::{Refused, StreamMemory};
use stackglass_host::system;
use stackglass_sampler::{NotStarted, Orders, Plan};
use std::sync::OnceLock;

static SESSION: OnceLock<Session> = OnceLock::new();

/// When sampling of a process began.
#[derive(Clone, Copy)]
pub struct Begin {
    /// CLOCK_MONOTONIC, ns.
    pub at: u64,
    /// CPU time of the calling thread until then, ns.
    pub cpu: u64,
}

impl Begin {
    /// The current time.
    pub fn now() -> Begin {
        Begin { at: system::now(), cpu: system::own_cpu() }
    }
}

/// The session of this process, if it has one.
pub fn get() -> Option<&'static Session> {
    SESSION.get()
}

/// The session of this process, looked for if it is not known yet. `None` if there is none for this process.
pub fn find() -> Option<&'static Session> {
    if let Some(session) = SESSION.get() {
        return Some(session);
    }
    // Programs with another C library (musl) inherit the environment and load this library too; it must not affect them.
    if !allocations::is_in_glibc() {
        return None;
    }
    let folder = environment::session_folder()?;
    // Before any other call: it may be one that ends this process.
    let confinement = inherited_filters::read()?;
    let session = session::open(folder)?;
    if confinement != 0 && confinement != session.page.confinement.load(Relaxed) {
        return None;
    }
    let is_followed = session.page.follow_children.load(Relaxed) != 0;
    if !is_followed && session.page.only_pid.load(Relaxed) != system::process_id() {
        return None;
    }
    let _ = SESSION.set(session);
    SESSION.get()
}

/// Creates this process's file in the session folder.
pub fn make_stream(start: u64) -> Result<StreamMemory, Refused> {
    let session = get().ok_or(Refused { step: "a session", errno: libc::ENOENT })?;
    StreamMemory::in_folder(session.folder.as_bytes(), start, session.page.stream_bytes.load(Relaxed))
}

/// Starts the sampler of this process. Without a stream, its thread creates one with `make_stream` after `patience` ns.
pub fn launch(
    begin: Begin,
    stream: Option<StreamMemory>,
    make_stream: fn(u64) -> Result<StreamMemory, Refused>,
    patience: u64,
) -> Result<(), NotStarted> {
    let session = get().ok_or(Refused { step: "a session", errno: libc::ENOENT })?;
    let create_thread =
        real_functions::pthread_create().ok_or(Refused { step: "a thread", errno: libc::ENOSYS })?;
    stackglass_sampler::launch(Plan {
        orders: Orders::Session(session.page),
        signal: signal_of(session),
        placement: Placement::Alternate,
        make_stream,
        stream,
        start: begin.at,
        start_cpu: Some(begin.cpu),
        patience,
        create_thread,
    })
    .map(drop)
}

/// The signal that the session requires: SIGPROF or SIGURG.
fn signal_of(session: &Session) -> i32 {
    match session.page.signal.load(Relaxed) as i32 {
        libc::SIGPROF => libc::SIGPROF,
        _ => libc::SIGURG,
    }
}
