//! Makes a stopped thread call the kernel on behalf of this process.
//!
//! At every moment the thread can continue without this process. Its registers wait in a frame on its own stack
//! ([`frame`](super::frame)), and each injected call begins as sigreturn: only while the thread is stopped at the entry of that call does it
//! become another one. The stack of a new task ends that task.

use super::Mapping;
use super::code::BorrowedCode;
use super::error::FreezeError;
use super::frame;
use super::memory::ProcessMemory;
use super::own_copies;
use super::redirected::redirects_calls;
use super::traced::{State, StoppedThreads, TracedThread, pause};
use crate::clock::monotonic;
use crate::interrupted_call::{self, ERESTART_RESTARTBLOCK};
use crate::ptrace::{self, Stop};
use stackglass_procfs::{limits, maps};
use std::time::Duration;

/// Bytes below the stack pointer that belong to the running function (x86-64 psABI).
const RED_ZONE: u64 = 128;
/// A call takes longer only if it waits for another thread of the process. The other threads are then detached.
const LONGEST_CALL: Duration = Duration::from_secs(2);

/// The path of the root folder, for chdir(2), and its place in the overwritten stack.
const ROOT: &[u8] = b"/\0";
const ROOT_OFFSET: u64 = 8;

/// Threads that are tried before a process is refused.
const MOST_CANDIDATES: usize = 16;

/// What a process lends to injected calls.
pub(super) struct Borrowed<'a> {
    pub(super) pid: u32,
    pub(super) name: &'a str,
    pub(super) code: BorrowedCode,
    /// Its memory, writable.
    pub(super) memory: &'a ProcessMemory,
    /// The mapping of the main thread's stack, as it was before the stop.
    pub(super) main_stack: Option<Mapping>,
    /// This process may suspend seccomp for its threads.
    pub(super) can_suspend_seccomp: bool,
    /// Init adopts and reaps its orphans, unless a subreaper does.
    pub(super) has_init: bool,
}

/// A thread that makes injected calls. [`Injection::restore`] must follow.
pub(super) struct Injection<'a> {
    borrowed: &'a Borrowed<'a>,
    pub(super) tid: u32,
    /// Seccomp confines the thread, and the tasks that it creates.
    pub(super) is_confined: bool,
    continues_with: libc::user_regs_struct,
    mask: u64,
    /// The frame that continues the thread.
    resume: u64,
    /// The frame that ends a new task.
    pub(super) end: u64,
    /// First address of the overwritten stack, and its bytes.
    overwritten: (u64, Vec<u8>),
    /// Threads to detach if a call takes too long.
    others: Vec<u32>,
    /// A call took too long, so the other threads were detached.
    pub(super) has_released_others: bool,
}

/// The thread that is to make the calls.
struct Continues {
    tid: u32,
    is_confined: bool,
    registers: libc::user_regs_struct,
}

/// A call to inject: its number and arguments.
pub(super) type Call = (i64, [u64; 4]);

/// How an injected call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallEnd {
    /// It returned.
    Returned(i64),
    /// It has created this task, which is stopped before its first instruction.
    Created(u32),
}

impl<'a> Injection<'a> {
    /// Prepares the best thread: the main thread if it has room on its stack, or one that is outside of a call.
    ///
    /// # Errors
    /// If no thread has room or may make calls, or the process ends.
    pub(super) fn prepare(
        borrowed: &'a Borrowed<'a>,
        stopped: &StoppedThreads<'_>,
    ) -> Result<Injection<'a>, FreezeError> {
        let pid = borrowed.pid;
        let mut candidates: Vec<&TracedThread> = stopped
            .threads
            .iter()
            .filter(|thread| thread.state == State::Stopped && thread.registers.is_some())
            .collect();
        let is_worse = |thread: &TracedThread| thread.is_confined && !borrowed.can_suspend_seccomp;
        candidates.sort_by_key(|thread| (is_worse(thread), rank(pid, thread)));
        // Also before the limit below: many threads may run such code.
        let found = candidates.len();
        candidates.retain(|thread| !redirects_calls(thread.tid, borrowed.memory));
        let name = || borrowed.name.to_owned();
        let mut refused = (candidates.len() < found).then(|| FreezeError::Redirected { pid, name: name() });
        let mut mappings = None;
        let mut bytes = 0;
        for thread in candidates.into_iter().take(MOST_CANDIDATES) {
            let Some(registers) = thread.continues_with else { continue };
            // The threads are stopped, so the answer stays valid.
            let is_confined = interrupted_call::is_confined(thread.tid);
            if is_confined && !borrowed.can_suspend_seccomp {
                refused = Some(FreezeError::Filtered { pid, name: name() });
                continue;
            }
            let extended = ptrace::extended_state(thread.tid);
            bytes = (2 * frame::size(&extended)).next_multiple_of(4096);
            let Some(top) = borrowed.room(thread.tid, registers.rsp, bytes as u64, &mut mappings) else {
                continue;
            };
            let others = stopped
                .threads
                .iter()
                .filter(|other| other.tid != thread.tid)
                .map(|other| other.tid)
                .collect();
            let continues = Continues { tid: thread.tid, is_confined, registers };
            return Injection::write_frames(borrowed, continues, &extended, top, bytes, others);
        }
        Err(refused.unwrap_or_else(|| FreezeError::NoRoom { pid, name: name(), bytes }))
    }

    fn write_frames(
        borrowed: &'a Borrowed<'a>,
        continues: Continues,
        extended: &[u8],
        top: u64,
        bytes: usize,
        others: Vec<u32>,
    ) -> Result<Injection<'a>, FreezeError> {
        let gone = |_| FreezeError::Gone { pid: borrowed.pid };
        let Continues { tid, is_confined, registers: continues_with } = continues;
        let mask = ptrace::blocked_signals(tid).map_err(gone)?;
        let start = top - bytes as u64;
        let mut saved = vec![0; bytes];
        if borrowed.memory.read(start, &mut saved) != bytes {
            return Err(FreezeError::NoRoom { pid: borrowed.pid, name: borrowed.name.to_owned(), bytes });
        }
        let ends_with = libc::user_regs_struct {
            rip: borrowed.code.syscall,
            rax: libc::SYS_exit_group as u64,
            rdi: 0,
            ..continues_with
        };
        let write = |top, registers: &libc::user_regs_struct| {
            frame::write(borrowed.memory, top, borrowed.code.signal_return, registers, mask, extended)
        };
        let resume = write(top, &frame::restarted(&continues_with));
        let end = write(top - bytes as u64 / 2, &ends_with);
        let root = borrowed.memory.write(start + ROOT_OFFSET, ROOT);
        let (Ok(resume), Ok(end), Ok(())) = (resume, end, root) else {
            let _ = borrowed.memory.write(start, &saved);
            return Err(FreezeError::NoRoom { pid: borrowed.pid, name: borrowed.name.to_owned(), bytes });
        };
        Ok(Injection {
            borrowed,
            tid,
            is_confined,
            continues_with,
            mask,
            resume,
            end,
            overwritten: (start, saved),
            others,
            has_released_others: false,
        })
    }

    /// A call by the prepared thread.
    ///
    /// # Errors
    /// If the thread ends, or the call does not return in time.
    pub(super) fn call(&mut self, number: i64, arguments: [u64; 4]) -> Result<CallEnd, FreezeError> {
        self.calls_by(self.tid, self.resume, &[(number, arguments)])
    }

    /// Creates a task by the prepared thread.
    ///
    /// # Errors
    /// As [`Injection::call`].
    pub(super) fn clone_task(&mut self, flags: i32) -> Result<CallEnd, FreezeError> {
        self.clone_task_by(self.tid, self.resume, flags)
    }

    /// Creates a task by a task that was created before.
    ///
    /// # Errors
    /// As [`Injection::call`].
    pub(super) fn clone_task_in(&mut self, task: u32, flags: i32) -> Result<CallEnd, FreezeError> {
        self.clone_task_by(task, self.end, flags)
    }

    /// Calls by a task that was created before, one after the other, whether they fail or not.
    ///
    /// # Errors
    /// As [`Injection::call`].
    pub(super) fn calls_in(&mut self, task: u32, calls: &[Call]) -> Result<(), FreezeError> {
        self.calls_by(task, self.end, calls).map(drop)
    }

    fn clone_task_by(&mut self, tid: u32, frame: u64, flags: i32) -> Result<CallEnd, FreezeError> {
        // The lowest byte is the exit signal: none.
        self.calls_by(tid, frame, &[(libc::SYS_clone, [flags as u64, self.end, 0, 0])])
    }

    /// Calls by a thread in a requested stop, in which it is again afterwards. Returns how the last one ended.
    fn calls_by(&mut self, tid: u32, frame: u64, calls: &[Call]) -> Result<CallEnd, FreezeError> {
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
        if self.is_confined {
            let name = || self.borrowed.name.to_owned();
            ptrace::set_options(tid, options | libc::PTRACE_O_SUSPEND_SECCOMP)
                .map_err(|_| FreezeError::Filtered { pid: self.borrowed.pid, name: name() })?;
        } else {
            ptrace::set_options(tid, options).map_err(|_| self.gone())?;
        }
        let mut end = CallEnd::Returned(0);
        for call in calls {
            // From the end of one call to the next: a requested stop in between would take longer.
            self.set_to_call(tid, frame)?;
            // Only now: the frame restores the mask.
            ptrace::block_signals(tid, u64::MAX).map_err(|_| self.gone())?;
            end = self.finish_call(tid, frame, call)?;
        }
        self.leave_call(tid)?;
        Ok(end)
    }

    /// Sets the registers of a stopped thread so that it returns through its frame: it continues where it was, or ends.
    fn set_to_call(&self, tid: u32, frame: u64) -> Result<(), FreezeError> {
        let mut registers = ptrace::registers(tid).map_err(|_| self.gone())?;
        // Sigreturn expects the frame's first word to be popped.
        registers.rip = self.borrowed.code.syscall;
        registers.rsp = frame + 8;
        registers.rax = libc::SYS_rt_sigreturn as u64;
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, registers).map_err(|_| self.gone())
    }

    /// Turns the return through the frame into a call, and continues to its end.
    fn finish_call(&mut self, tid: u32, frame: u64, call: &Call) -> Result<CallEnd, FreezeError> {
        let (number, arguments) = *call;
        let mut has_entered = false;
        let mut signal = 0;
        loop {
            ptrace::continue_to_call(tid, signal).map_err(|_| self.gone())?;
            let stop = self.wait(tid)?;
            signal = 0;
            if stop.is_at_call() && !has_entered {
                has_entered = true;
                let mut registers = ptrace::registers(tid).map_err(|_| self.gone())?;
                registers.orig_rax = number as u64;
                registers.rsp = frame;
                [registers.rdi, registers.rsi, registers.rdx, registers.r10] = arguments;
                ptrace::set_registers(tid, registers).map_err(|_| self.gone())?;
            } else if stop.is_at_call() {
                let registers = ptrace::registers(tid).map_err(|_| self.gone())?;
                return Ok(CallEnd::Returned(registers.rax as i64));
            } else if stop.event == libc::PTRACE_EVENT_CLONE {
                let task = ptrace::event_message(tid).map_err(|_| self.gone())? as u32;
                own_copies::note(task);
                self.wait(task)?;
                return Ok(CallEnd::Created(task));
            } else if stop.event == 0 {
                // A signal that cannot be blocked.
                signal = stop.signal;
            }
        }
    }

    /// Brings a thread from the end of a call into a requested stop.
    fn leave_call(&mut self, tid: u32) -> Result<(), FreezeError> {
        ptrace::interrupt(tid).map_err(|_| self.gone())?;
        let mut signal = 0;
        loop {
            ptrace::resume(tid, signal).map_err(|_| self.gone())?;
            let stop = self.wait(tid)?;
            if stop.is_requested() {
                break;
            }
            signal = if stop.event == 0 { stop.signal } else { 0 };
        }
        ptrace::set_options(tid, 0).map_err(|_| self.gone())
    }

    fn gone(&self) -> FreezeError {
        FreezeError::Gone { pid: self.borrowed.pid }
    }

    /// The next stop of a thread or task.
    fn wait(&mut self, tid: u32) -> Result<Stop, FreezeError> {
        let start = monotonic();
        let mut waits = 0;
        loop {
            match ptrace::next_stop(tid) {
                Ok(Some(stop)) => return Ok(stop),
                Ok(None) => {}
                Err(_) => return Err(FreezeError::Gone { pid: self.borrowed.pid }),
            }
            if u128::from(monotonic().saturating_sub(start)) > LONGEST_CALL.as_nanos() {
                self.has_released_others = true;
                for other in self.others.drain(..) {
                    let _ = ptrace::detach(other);
                }
            }
            pause(waits);
            waits += 1;
        }
    }

    /// The address of the path of the root folder, also in tasks that were created.
    pub(super) fn root_path(&self) -> u64 {
        self.overwritten.0 + ROOT_OFFSET
    }

    /// Addresses that a task which was created needs to make calls, and to end.
    pub(super) fn needed_by_tasks(&self) -> [u64; 4] {
        [self.end, self.root_path(), self.borrowed.code.syscall, self.borrowed.code.signal_return]
    }

    /// The address of eight bytes of the overwritten stack that no frame uses.
    pub(super) fn scratch(&self) -> u64 {
        self.overwritten.0
    }

    /// The stack that was overwritten: first address and bytes.
    pub(super) fn overwritten(&self) -> (u64, &[u8]) {
        (self.overwritten.0, &self.overwritten.1)
    }

    /// Puts back the thread's mask, registers and stack, in this order: until its registers are back, it needs the frame.
    pub(super) fn restore(self) {
        // If one fails, the thread was killed.
        let _ = ptrace::set_options(self.tid, 0);
        let _ = ptrace::block_signals(self.tid, self.mask);
        let _ = ptrace::set_registers(self.tid, self.continues_with);
        let (start, bytes) = &self.overwritten;
        let _ = self.borrowed.memory.write(*start, bytes);
    }
}

/// Order in which threads are asked: those outside of a call, of them first the main thread, whose stack has room; last those
/// with a call that only the kernel can continue.
fn rank(pid: u32, thread: &TracedThread) -> u32 {
    let by_call = match thread.registers {
        Some(registers) if (registers.orig_rax as i64) < 0 => 0,
        Some(registers) if registers.rax as i64 == ERESTART_RESTARTBLOCK => 2,
        _ => 1,
    };
    2 * by_call + u32::from(thread.tid != pid)
}

impl Borrowed<'_> {
    /// The address below which `bytes` bytes may be overwritten, on the thread's own stack: should this process die, all
    /// threads continue at once.
    fn room(
        &self,
        tid: u32,
        stack_pointer: u64,
        bytes: u64,
        mappings: &mut Option<Vec<Mapping>>,
    ) -> Option<u64> {
        let top = stack_pointer.checked_sub(RED_ZONE)? & !63;
        // The copy would undo what is written to shared memory, while the program uses it.
        let has_room = |mapping: &Mapping| {
            mapping.writable && !mapping.shared && mapping.range.start.saturating_add(bytes) < top
        };
        if let Some(stack) = self.main_stack.as_ref().filter(|stack| stack.range.contains(&top)) {
            let mappings = || maps::read(tid).unwrap_or_default();
            let has_room = has_room(stack) || self.can_grow(stack, top.saturating_sub(bytes), &mappings());
            return has_room.then_some(top);
        }
        if tid == self.pid {
            // It runs on a stack of its own making (Go, fibers): the lowest bytes of the real one, if they were never used.
            let stack = self.main_stack.as_ref()?;
            let start = stack.range.start;
            let mut lowest = vec![1; bytes as usize];
            let is_unused = start + bytes < stack.range.end
                && self.memory.read(start, &mut lowest) == lowest.len()
                && lowest.iter().all(|byte| *byte == 0);
            return is_unused.then_some(start + bytes);
        }
        let mappings = mappings.get_or_insert_with(|| maps::read(tid).unwrap_or_default());
        maps::at(mappings, top).is_some_and(has_room).then_some(top)
    }

    /// Whether the kernel extends the main thread's stack down to `lowest` when it is written there: within its limit, and away from
    /// the mapping below (`mm/mmap.c`: `acct_stack_growth`, `stack_guard_gap`).
    fn can_grow(&self, stack: &Mapping, lowest: u64, mappings: &[Mapping]) -> bool {
        const GUARD: u64 = 1 << 20;
        const PAGE: u64 = 4096;
        let size = stack.range.end.saturating_sub(lowest & !(PAGE - 1));
        let below = mappings.iter().rfind(|mapping| mapping.range.end <= stack.range.start);
        let is_free = below.is_none_or(|below| below.range.end.saturating_add(GUARD + PAGE) <= lowest);
        stack.writable && is_free && limits::stack(self.pid).is_some_and(|limit| size <= limit)
    }
}
