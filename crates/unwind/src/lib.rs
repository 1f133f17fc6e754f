//! Walks call stacks of x86-64 System V programs that were built without frame pointers,
//! from places where almost nothing is allowed: inside a signal handler of somebody else's program.
//!
//! Duty: given registers and a way to read the stack, give the return addresses, using the unwind
//! rules every compiler leaves in `.eh_frame`. The same walker serves the signal handler (plain loads
//! bounded by the stack's mapping), sleeping threads (stack copied, `rbp` unknown) and other processes:
//! nothing in [`walk`] and [`rules`] assumes the own process, only the readers passed in do.
//!
//! Not its duty: names and lines, storing samples, deciding when to look.
//!
//! # Promises to a signal handler
//! Walking allocates nothing, takes no lock, does not panic, keeps every loop bounded, and reads no byte
//! that may have been unmapped. Everything larger than a few words lies in a [`Scratch`] of the caller.
//!
//! # Example: the stack of the calling thread
//! ```
//! use stackglass_unwind::{OwnStack, Registers, Scratch, Unwinder};
//!
//! static UNWINDER: Unwinder = Unwinder::new();
//! UNWINDER.refresh().expect("the list of loaded modules");
//!
//! let mut frames = [0u64; 128];
//! let mut scratch = Scratch::new();
//! let here = Registers::here();
//! let walk = UNWINDER.walk(&here, &mut OwnStack::at(here.sp()), &mut scratch, &mut frames);
//! assert!(walk.len > 2, "at least this function, main and the runtime below it");
//! ```
//!
//! # Addresses
//! All addresses are plain `u64` of the walked process. Frames come as *lookup addresses*: the innermost
//! one and those interrupted by a signal exactly as they are, callers as return address - 1, so that every
//! one of them lies inside the instruction it stands for.
//!
//! # Sources
//! System V ABI x86-64 (register numbers, red zone), DWARF 5 §6.4 (call frame information), Linux Standard
//! Base 5 core §10.6 (`.eh_frame`, `.eh_frame_hdr`), Linux `include/uapi/linux/fs.h` (`PROCMAP_QUERY`).
#![allow(unsafe_code, reason = "stacks and modules of the own process are read by plain loads")]

#[path = "call_site_x86_64.rs"]
pub mod call_site;
mod cursor;
mod eh_frame;
mod expression;
pub mod mapping;
pub mod memory;
pub mod modules;
#[path = "prologue_x86_64.rs"]
mod prologue;
#[path = "registers_x86_64.rs"]
mod registers;
pub mod rules;
mod scratch;
pub mod table;
mod unwinder;
pub mod walk;

pub use memory::{ImageMemory, OwnImages, OwnStack, ProcessStack, StackMemory};
pub use modules::{Module, ModuleList};
pub use registers::{Register, Registers};
pub use scratch::Scratch;
pub use table::RuleTable;
pub use unwinder::{ModulesGuard, OutOfMemory, Unwinder};
pub use walk::{Cut, End, Walk, Walker};
