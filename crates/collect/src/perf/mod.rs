//! perf_event_open(2) as this crate uses it: attributes, registers, rings and the records in them.
//!
//! Two users: `outside` follows a program from its start with events that the kernel hands on to all threads and
//! children; `attach` opens one event for each thread of a process that runs already.
//!
//! Sources: perf_event_open(2), include/uapi/linux/perf_event.h, arch/x86/include/uapi/asm/perf_regs.h.

pub(crate) mod attributes;
pub(crate) mod records;
pub(crate) mod registers;
pub(crate) mod ring;
