//! Events at functions of running programs: uprobes, as the kernel's trace file system defines them.
//!
//! A definition names a place in a file. The kernel puts its breakpoint there only in processes that have an event for it, and
//! takes it away with the last of these events. A definition without events does nothing; one that a killed process has left is
//! removed by the next.
//!
//! Only root may do this. The file system is mounted for this process alone. Events of `struct perf_event_attr` with the type
//! `uprobe` need no definition, but each is a separate one, and the kernel looks at all of them at every hit.
//!
//! Sources: Documentation/trace/uprobetracer.rst, kernel/trace/trace_uprobe.c, fsopen(2), fsmount(2).

use crate::attributes::{Attributes, PERF_TYPE_TRACEPOINT, flags, sample};
use crate::registers;
use crate::ring::Raw;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
/// All groups of definitions of this program begin with this word, followed by the process.
const GROUP: &str = "stackglass_";

/// The definitions of this process. They are removed on drop, after which no event may use them: drop the events first.
pub struct Uprobes {
    mounted: OwnedFd,
    group: String,
    names: Vec<String>,
}

/// Where in a function an event happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// Before the instruction at the offset.
    Entry,
    /// When the function that begins at the offset has returned.
    Return,
}

impl Uprobes {
    /// Opens the trace file system, and removes what processes that have ended have left there.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN, ENODEV if the kernel has no uprobes.
    pub fn open() -> io::Result<Uprobes> {
        let group = format!("{GROUP}{}", std::process::id());
        let uprobes = Uprobes { mounted: mount()?, group, names: Vec::new() };
        uprobes.remove_left()?;
        Ok(uprobes)
    }

    /// Defines an event at byte `offset` of a file. Returns the number for [`Attributes::config`].
    ///
    /// # Errors
    /// Those of the kernel: EINVAL if there can be no breakpoint.
    pub fn define(&mut self, file: &Path, offset: u64, moment: Moment) -> io::Result<u64> {
        let letter = if moment == Moment::Entry { 'p' } else { 'r' };
        let (name, group) = (format!("e{}", self.names.len()), &self.group);
        self.command(&format!("{letter}:{group}/{name} {}:{offset:#x}", file.display()))?;
        let id = self.path(&format!("events/{group}/{name}/id"));
        self.names.push(name);
        let text = fs::read_to_string(id)?;
        text.trim().parse().map_err(|_| io::Error::other(format!("{text:?} is no number of an event")))
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.mounted.as_raw_fd()))
    }

    fn command(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.path("uprobe_events"))?;
        file.write_all(line.as_bytes())
    }

    fn remove_left(&self) -> io::Result<()> {
        let text = match fs::read_to_string(self.path("uprobe_events")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::from_raw_os_error(libc::ENODEV));
            }
            text => text?,
        };
        for name in text.lines().filter_map(left) {
            // One that is in use is of a process in another namespace, and stays.
            let _ = self.command(&format!("-:{name}"));
        }
        Ok(())
    }
}

impl Drop for Uprobes {
    fn drop(&mut self) {
        for name in &self.names {
            // One that cannot be removed now does nothing, and is removed by the next command.
            let _ = self.command(&format!("-:{}/{name}", self.group));
        }
    }
}

/// The name of a definition, `GROUP/NAME`, if the process that made it has ended.
fn left(definition: &str) -> Option<&str> {
    let name = definition.split_once(':')?.1.split(' ').next()?;
    let process: u32 = name.strip_prefix(GROUP)?.split('/').next()?.parse().ok()?;
    let is_alive = process == std::process::id() || Path::new(&format!("/proc/{process}")).exists();
    (!is_alive).then_some(name)
}

/// Mounts the trace file system at no path.
fn mount() -> io::Result<OwnedFd> {
    let descriptor = |result: libc::c_long| match result {
        // SAFETY: a new descriptor that nothing else owns.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(result as i32) }),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: a string that ends with a zero byte.
    let context =
        descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), FSOPEN_CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    let create = FSCONFIG_CMD_CREATE;
    // SAFETY: this command takes neither a key nor a value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), create, none, none, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a call without pointers.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })
}

/// An event that records each call: [`Call`].
pub fn each_call(event: u64, wakeup: u32) -> Attributes {
    Attributes {
        sample_period: 1,
        sample_type: sample::TID | sample::TIME | sample::ID | sample::REGS_USER,
        sample_regs_user: registers::of_calls(),
        ..common(event, wakeup)
    }
}

/// An event that records the stack of each `period`th call, as samples: [`crate::records::Sample`]. In place of their period,
/// they have the number of the event. With a period, the kernel would record every call.
pub fn some_stacks(event: u64, period: u64, stack: u32, wakeup: u32) -> Attributes {
    Attributes {
        sample_period: period,
        sample_type: sample::TID | sample::TIME | sample::ID | sample::REGS_USER | sample::STACK_USER,
        sample_regs_user: registers::mask(),
        sample_stack_user: stack,
        ..common(event, wakeup)
    }
}

/// An event that records nothing, of one thread alone. While it is open, other events of the same definition in that process come and go
/// without breakpoints that do.
///
/// The kernel holds a lock while it puts a breakpoint in place or removes it: about 80 ms each time, measured on two CPUs. A new thread
/// that inherits events waits for that lock. So open this event before all events that are inherited, and close it after them.
///
/// Source: `event_mutex` in kernel/trace/trace_event_perf.c, `perf_trace_init` and `perf_trace_destroy`; `trace_uprobe_filter_remove` in
/// kernel/trace/trace_uprobe.c.
pub fn without_records(event: u64) -> Attributes {
    Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        config: event,
        flags: flags::DISABLED,
        wakeup: u32::MAX,
        ..Attributes::default()
    }
}

fn common(event: u64, wakeup: u32) -> Attributes {
    Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        config: event,
        flags: flags::INHERIT | flags::USE_CLOCKID | flags::SAMPLE_ID_ALL | flags::WATERMARK,
        clockid: libc::CLOCK_MONOTONIC,
        wakeup,
        ..Attributes::default()
    }
}

/// A call of a function, or its return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// CLOCK_MONOTONIC, ns.
    pub at: u64,
    /// Which event it is: [`crate::attributes::id`].
    pub event: u64,
    /// What the function returns.
    pub result: u64,
    /// Its first four arguments.
    pub arguments: [u64; 4],
}

impl Call {
    /// Reads a record of an event of [`each_call`]. `None` if it is another record, or of a 32-bit thread.
    pub fn parse(raw: Raw<'_>) -> Option<Call> {
        let word = |index: usize| -> Option<u64> {
            Some(u64::from_le_bytes(raw.body.get(index * 8..index * 8 + 8)?.try_into().ok()?))
        };
        let (thread, abi) = (word(0)?, word(3)?);
        if raw.kind != crate::records::PERF_RECORD_SAMPLE || abi != crate::records::ABI_64 {
            return None;
        }
        // rax, rcx, rdx, rsi, rdi, in the order of their bits.
        let [result, fourth, third, second, first] = [word(4)?, word(5)?, word(6)?, word(7)?, word(8)?];
        let (pid, tid) = (thread as u32, (thread >> 32) as u32);
        Some(Call {
            pid,
            tid,
            at: word(1)?,
            event: word(2)?,
            result,
            arguments: [first, second, third, fourth],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_ended_processes_are_left() {
        let gone = format!("p:{GROUP}4294967290/e0 /lib/libc.so.6:0x0000000000098930");
        assert_eq!(left(&gone), Some("stackglass_4294967290/e0"));
        assert_eq!(left(&format!("p:{GROUP}{}/e0 /lib/libc.so.6:0x98930", std::process::id())), None);
        assert_eq!(left("p:probe_libc/malloc /lib/libc.so.6:0x98930"), None);
        assert_eq!(left("p:stackglass_x/malloc /lib/libc.so.6:0x98930"), None);
    }

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let words = [7 | 8 << 32, 99, 42, 2, 100, 4, 3, 2, 1];
        let body: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let raw = |body| Raw { kind: crate::records::PERF_RECORD_SAMPLE, misc: 2, body };
        let call = Call { pid: 7, tid: 8, at: 99, event: 42, result: 100, arguments: [1, 2, 3, 4] };
        assert_eq!(Call::parse(raw(&body)), Some(call));
        assert!((0..body.len()).all(|len| Call::parse(raw(&body[..len])).is_none()));
        assert_eq!(Call::parse(Raw { kind: 2, misc: 2, body: &body }), None);
    }
}
