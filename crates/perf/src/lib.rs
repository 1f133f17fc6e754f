//! perf_event_open(2) as Stackglass uses it: attributes, registers, ring buffers, the records in them, and stacks that are deeper
//! than what a record holds.
//!
//! Two users: `collect` follows a program from its start with events that the kernel passes on to all threads and
//! children; `attach` opens one event for each thread of a process that is already running.
//!
//! Sources: perf_event_open(2), include/uapi/linux/perf_event.h, arch/x86/include/uapi/asm/perf_regs.h.
#![allow(unsafe_code, reason = "system calls and a mapping shared with the kernel")]

pub mod attributes;
pub mod breakpoint;
pub mod deep_stack;
pub mod records;
pub mod registers;
pub mod ring;
pub mod uprobe;
pub mod user_stop;
