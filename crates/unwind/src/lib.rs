//! Walks call stacks of x86-64 System V programs without frame pointers, also inside a signal handler of an unknown program.
//!
//! Duty: from registers and a reader of the stack to the return addresses, by the unwind rules that every compiler writes to
//! `.eh_frame`. One walker serves the signal handler (plain loads within the stack's mapping), sleeping threads (a copy of
//! the stack, `rbp` unknown) and other processes. Only the readers passed in depend on the process.
//!
//! Not its duty: names and lines, storing samples, deciding when to sample.
//!
//! # Guarantees for a signal handler
//! A walk allocates nothing, takes no lock, does not panic, has bounded loops only, and reads no byte that may have been
//! unmapped. Everything larger than a few words is in a [`Scratch`] of the caller.
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
//! assert!(walk.len > 2, "at least this function, main and the runtime that calls it");
//! ```
//!
//! # Addresses
//! All addresses are `u64` of the walked process. Frames are *lookup addresses*: the pc of the innermost frame and of frames
//! that a signal interrupted; for callers, the return address minus 1. Each lies inside the instruction that it denotes.
//!
//! # Sources
//! System V ABI x86-64 (register numbers, red zone), DWARF 5 §6.4 (call frame information), Linux Standard
//! Base 5 core §10.6 (`.eh_frame`, `.eh_frame_hdr`), Itanium C++ ABI: exception handling tables, Linux `include/uapi/linux/fs.h` (`PROCMAP_QUERY`).
#![allow(unsafe_code, reason = "stacks and modules of the own process are read by plain loads")]

#[path = "call_site_x86_64.rs"]
pub mod call_site;
mod cursor;
mod dwarf;
mod eh_frame;
#[path = "epilogue_x86_64.rs"]
mod epilogue;
pub mod expression;
mod interpreter;
mod landing_pad;
pub mod mapping;
pub mod memory;
pub mod modules;
pub mod own_memory;
pub mod pages;
#[path = "prologue_x86_64.rs"]
mod prologue;
mod published_modules;
#[path = "registers_x86_64.rs"]
mod registers;
pub mod rules;
mod scratch;
pub mod stack_cache;
pub mod table;
mod unwinder;
pub mod walk;

pub use landing_pad::{CallSites, LandingPad};
pub use memory::{ModuleMemory, OwnModules, OwnStack, ProcessStack, StackMemory};
pub use modules::{Module, ModuleList};
pub use registers::{Register, Registers};
pub use scratch::Scratch;
pub use stack_cache::StackCache;
pub use table::RuleTable;
pub use unwinder::{ModulesGuard, OutOfMemory, Unwinder};
pub use walk::{Cut, End, Walk, WalkedFrame, Walker};
