//! Stops all threads of a process, and lets them go.
//!
//! No thread is interrupted inside a system call: it stops in user code, or is left alone in its call
//! ([`user_code`](super::user_code)).
//!
//! On request, all threads are interrupted ([`Method::Interrupt`]). That ends the wait of a sleeping thread. The kernel makes most
//! calls again; others return EINTR although no handler ran. A thread with such a call is put back to the instruction of its
//! call, at once after the stop: should this process die, the program notices nothing. Calls that move data return early.
//!
//! The kernel continues a sleep with a time-out by restart_syscall(2). A seccomp filter that lacks it would end the program, so
//! a thread under a filter is put back as well.

use super::error::FreezeError;
use super::traced::{Method, State, StoppedThreads, TracedThread, pause};
use super::user_code;
use crate::access;
use crate::clock::monotonic;
use crate::deadlock::Seizing;
use crate::interrupted_call::{ERESTART_RESTARTBLOCK, is_confined};
use crate::ptrace::{self, Stop};
use stackglass_procfs::{Status, threads};
use stackglass_unwind::call_site::SYSCALL;
use std::collections::HashSet;
use std::time::Duration;

/// A thread that does not run a program's code stops within this time, even on a busy machine.
const LONGEST_STOP: Duration = Duration::from_secs(3);
/// A thread that the kernel does not interrupt (the parent of a vfork, a read from a disk) runs no code of the program. It
/// is not waited for longer than this.
const LONGEST_IN_KERNEL: Duration = Duration::from_millis(3);
/// Rounds in which new threads are found. Threads that are being created appear in the second.
const MOST_ROUNDS: usize = 10_000;

impl<'a> StoppedThreads<'a> {
    /// Starts to trace all threads. None stops yet.
    ///
    /// # Errors
    /// If a thread may not be traced.
    pub(super) fn seize(
        pid: u32,
        method: Method,
        seizing: &'a Seizing,
    ) -> Result<StoppedThreads<'a>, FreezeError> {
        let mut process = StoppedThreads::none(pid, method, seizing);
        process.seize_new()?;
        match process.threads.is_empty() {
            true => Err(FreezeError::Gone { pid }),
            false => Ok(process),
        }
    }

    /// Threads that this thread traces already.
    fn adopt(pid: u32, traced: &[u32], seizing: &'a Seizing) -> StoppedThreads<'a> {
        let mut process = StoppedThreads::none(pid, Method::Interrupt, seizing);
        traced.iter().for_each(|tid| process.add(*tid, String::new(), false));
        process
    }

    fn none(pid: u32, method: Method, seizing: &'a Seizing) -> StoppedThreads<'a> {
        StoppedThreads { pid, threads: Vec::new(), known: HashSet::new(), seizing, method }
    }

    fn add(&mut self, tid: u32, name: String, is_confined: bool) {
        self.known.insert(tid);
        self.threads.push(TracedThread {
            tid,
            name,
            state: State::Running,
            registers: None,
            continues_with: None,
            is_confined,
            armed: None,
            sleeping: None,
            ran_at: monotonic(),
            is_put_back: false,
            is_own_child: tid == self.pid
                && Status::read(tid).is_some_and(|status| status.parent == std::process::id()),
        });
    }

    /// Traces threads that are not traced yet. Returns how many are new.
    fn seize_new(&mut self) -> Result<usize, FreezeError> {
        let before = self.threads.len();
        for tid in threads::list(self.pid) {
            if !self.known.contains(&tid) {
                self.seize_thread(tid)?;
            }
        }
        Ok(self.threads.len() - before)
    }

    /// Traces a thread; `false` if it has ended.
    fn seize_thread(&mut self, tid: u32) -> Result<bool, FreezeError> {
        if let Err(error) = self.seizing.seize(tid) {
            // The main thread stays listed after its end; others are gone.
            if Status::read(tid).is_none_or(|status| status.has_ended()) {
                self.known.insert(tid);
                return Ok(false);
            }
            return Err(access::refused(self.pid, error).into());
        }
        let name = threads::name(self.pid, tid).unwrap_or_default();
        let is_confined = Status::read(tid).is_some_and(|status| status.confined);
        self.add(tid, name, is_confined);
        Ok(true)
    }

    /// Stops all threads, also those that begin meanwhile. Threads that sleep or are busy in the kernel stay there.
    ///
    /// # Errors
    /// If a thread keeps running.
    pub(super) fn stop(&mut self) -> Result<(), FreezeError> {
        self.stop_from_on(0)?;
        let may_wait = |state| state == State::InKernel && self.method == Method::UserCode;
        let is_there = |state| state != State::Gone && (state != State::InKernel || may_wait(state));
        match self.threads.iter().any(|thread| is_there(thread.state)) {
            true => Ok(()),
            false => Err(self.none_stopped()),
        }
    }

    /// Stops threads that have begun meanwhile.
    fn stop_new(&mut self) -> Result<(), FreezeError> {
        let done = self.threads.len();
        match self.seize_new()? {
            0 => Ok(()),
            _ => self.stop_from_on(done),
        }
    }

    fn stop_from_on(&mut self, first: usize) -> Result<(), FreezeError> {
        let mut done = first;
        for _ in 0..MOST_ROUNDS {
            match self.method {
                Method::UserCode => user_code::stop(self, done)?,
                Method::Interrupt => self.stop_from(done)?,
            }
            done = self.threads.len();
            if self.seize_new()? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The longest time that a thread has been stopped until now.
    pub(super) fn longest_hold(&self) -> Duration {
        self.threads.iter().map(TracedThread::held).max().unwrap_or_default()
    }

    /// Whether a thread has stopped in user code, so that it can make calls.
    pub(super) fn can_call(&self) -> bool {
        self.threads.iter().any(|thread| thread.state == State::Stopped)
    }

    fn stop_from(&mut self, first: usize) -> Result<(), FreezeError> {
        for thread in &self.threads[first..] {
            // One that has ended is noticed below.
            let _ = ptrace::interrupt(thread.tid);
        }
        (first..self.threads.len()).try_for_each(|index| self.wait_for(index))
    }

    /// Whether a thread is in a call that does not sleep.
    pub(super) fn some_in_kernel(&self) -> bool {
        self.threads.iter().any(|thread| thread.state == State::InKernel)
    }

    /// Whether a thread waits for children of any kind: the task that makes the copy would be one.
    pub(super) fn some_wait_for_all_children(&self) -> bool {
        const ANY_KIND: u64 = (libc::__WALL | libc::__WCLONE) as u32 as u64;
        let asleep = self.threads.iter().filter(|thread| thread.state == State::Asleep);
        asleep.filter_map(|thread| thread.sleeping?.call()).any(|call| match call.number {
            libc::SYS_wait4 => call.arguments[2] & ANY_KIND != 0,
            libc::SYS_waitid => call.arguments[3] & ANY_KIND != 0,
            _ => false,
        })
    }

    /// Stops threads that ran during an attempt to copy the process.
    ///
    /// # Errors
    /// As [`StoppedThreads::stop`].
    pub(super) fn stop_again(&mut self) -> Result<(), FreezeError> {
        user_code::settle_again(self)?;
        self.stop_new()
    }

    pub(super) fn none_stopped(&self) -> FreezeError {
        match self.threads.iter().find(|thread| thread.state == State::InKernel) {
            Some(thread) => FreezeError::NotStopped { pid: self.pid, tid: thread.tid },
            None => FreezeError::Gone { pid: self.pid },
        }
    }

    /// Waits until a thread is stopped, has ended, or is found to wait in the kernel.
    fn wait_for(&mut self, index: usize) -> Result<(), FreezeError> {
        let thread = &mut self.threads[index];
        let start = monotonic();
        let mut waits = 0u32;
        while thread.state == State::Running {
            thread.step();
            if thread.state != State::Running {
                break;
            }
            let waited = Duration::from_nanos(monotonic().saturating_sub(start));
            if waited > LONGEST_IN_KERNEL && waits.is_multiple_of(16) {
                match Status::read(thread.tid) {
                    Some(status) if status.state == b'D' => thread.state = State::InKernel,
                    Some(status) if !status.has_ended() => {}
                    _ => thread.state = State::Gone,
                }
            }
            if waited > LONGEST_STOP {
                return Err(FreezeError::NotStopped { pid: self.pid, tid: thread.tid });
            }
            pause(waits);
            waits += 1;
        }
        if thread.state == State::Gone {
            self.seizing.ended(thread.tid);
        }
        Ok(())
    }

    /// Reads the registers of all stopped threads, and puts those back whose calls were interrupted.
    pub(super) fn read_registers(&mut self) {
        for thread in self.threads.iter_mut().filter(|thread| thread.state == State::Stopped) {
            if thread.registers.is_some() {
                continue;
            }
            let Ok(registers) = ptrace::registers(thread.tid) else { continue };
            thread.registers = Some(registers);
            thread.continues_with = Some(registers);
            if let Some(before) = before_call(thread.tid, &registers)
                && ptrace::set_registers(thread.tid, before).is_ok()
            {
                thread.continues_with = Some(before);
                thread.is_put_back = true;
                // A mask that holds only during the call ends with it.
                if let Ok(mask) = ptrace::blocked_signals(thread.tid) {
                    let _ = ptrace::block_signals(thread.tid, mask);
                }
            }
        }
    }

    /// Lets all threads go. Those that did not stop are traced until this thread ends.
    pub(super) fn release(&mut self) {
        self.let_stopped_go();
        match self.method {
            Method::UserCode => user_code::let_go(self),
            Method::Interrupt => {
                let start = monotonic();
                while self.release_late()
                    && monotonic().saturating_sub(start) < LONGEST_STOP.as_nanos() as u64
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Lets all stopped threads go. Returns the longest time that one was stopped.
    pub(super) fn let_stopped_go(&mut self) -> Duration {
        let mut held = Duration::ZERO;
        for thread in self.threads.iter_mut().filter(|thread| thread.state == State::Stopped) {
            // A signal that came meanwhile ends the call.
            if thread.is_put_back
                && let Some(registers) = thread.registers
                && handler_will_run(thread.tid)
            {
                let _ = ptrace::set_registers(thread.tid, registers);
            }
            // What could stop it goes first.
            thread.armed = None;
            let _ = ptrace::detach(thread.tid);
            held = held.max(thread.held());
            thread.state = State::Gone;
            self.seizing.ended(thread.tid);
        }
        held
    }

    /// Lets threads go that waited in the kernel and have stopped since. Returns whether some still wait.
    fn release_late(&mut self) -> bool {
        for thread in self.threads.iter_mut().filter(|thread| thread.state == State::InKernel) {
            thread.state = State::Running;
            thread.step();
            match thread.state {
                State::Running => thread.state = State::InKernel,
                State::Stopped => {
                    let _ = ptrace::detach(thread.tid);
                    thread.state = State::Gone;
                }
                _ => {}
            }
        }
        self.threads.iter().any(|thread| thread.state == State::InKernel)
    }
}

impl TracedThread {
    /// Looks for a stop. Signals that come before are delivered.
    fn step(&mut self) {
        while self.state == State::Running {
            let now = monotonic();
            match ptrace::next_stop(self.tid) {
                Ok(None) => return self.ran_at = now,
                Err(_) => self.end(),
                Ok(Some(stop)) if stop.is_requested() => self.state = State::Stopped,
                Ok(Some(stop)) => resume_with_signal(self.tid, stop),
            }
        }
    }

    /// How long it has been stopped, at most.
    fn held(&self) -> Duration {
        match self.state {
            State::Stopped => Duration::from_nanos(monotonic().saturating_sub(self.ran_at)),
            _ => Duration::ZERO,
        }
    }
}

/// Stops threads that this thread traces, and lets them go: tracing ends only with a stop. Returns the threads that did not stop
/// and are still traced; they may stop later.
pub(crate) fn release(pid: u32, traced: &[u32], seizing: &Seizing) -> Vec<u32> {
    let mut process = StoppedThreads::adopt(pid, traced, seizing);
    // Those that have ended meanwhile, or do not stop, are not in the way.
    let _ = process.stop_from(0);
    process.read_registers();
    process.release();
    let still = process.threads.iter().filter(|thread| thread.state != State::Gone);
    still.map(|thread| thread.tid).collect()
}

/// Continues a thread that stopped before the one requested stop.
fn resume_with_signal(tid: u32, stop: Stop) {
    let signal = if stop.event == 0 { stop.signal } else { 0 };
    // Fails if the thread was killed meanwhile, which the next report tells.
    let _ = ptrace::resume(tid, signal);
}

/// The registers with which a thread repeats its call, if the call returned EINTR only because of the stop, or if seccomp may
/// keep the kernel from continuing it. The time-out of the call begins anew.
fn before_call(tid: u32, registers: &libc::user_regs_struct) -> Option<libc::user_regs_struct> {
    let number = registers.orig_rax as i64;
    const EINTR: i64 = -(libc::EINTR as i64);
    let is_interrupted = number >= 0
        && match registers.rax as i64 {
            EINTR => true,
            ERESTART_RESTARTBLOCK => is_confined(tid),
            _ => false,
        };
    // `close` has closed the descriptor, and a second `connect` means something else.
    let may_be_repeated = !matches!(number, libc::SYS_close | libc::SYS_connect);
    if !is_interrupted || !may_be_repeated || handler_will_run(tid) {
        return None;
    }
    Some(libc::user_regs_struct {
        rax: registers.orig_rax,
        rip: registers.rip.wrapping_sub(SYSCALL.len() as u64),
        orig_rax: u64::MAX,
        ..*registers
    })
}

/// Whether a handler runs when the thread continues: its signal has interrupted the call as well.
fn handler_will_run(tid: u32) -> bool {
    ptrace::has_pending_signals(tid)
        && Status::read(tid).is_none_or(|status| status.pending & !status.blocked & status.caught != 0)
}
