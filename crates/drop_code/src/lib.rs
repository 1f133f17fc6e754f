//! What the drop of a value would do, by the code that drops it.
//!
//! A guard that was given to `drop()` is still described as a variable, and its bytes are still there. Only the code knows: what
//! the compiler made to drop a suspended future drops what is live in its state, and no more. So this code is interpreted,
//! instruction by instruction, over a copy of the memory: from the function that frees the value until that returns. Nothing
//! runs in the process. If the code would give a permit of a lock back, then the value holds it.
//!
//! The same holds for a frame of a thread: its landing pad, which would run if the call were unwound, drops what is live there.
//!
//! [`Drops`] interprets such functions, and [`Dropped`] says what one of them does. A [`machine`] has the registers and the memory,
//! and [`instructions`] change it.
//!
//! The code and the memory are hostile input: each loop may be endless, each address may be wrong.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod calls_within;
mod code;
#[cfg(test)]
mod compiled_drops;
mod drop_stop;
mod dropped;
mod drops;
pub mod instructions;
pub mod machine;
mod operands;
mod run;

pub use calls_within::IsPad;
pub use drop_stop::DropStop;
pub use dropped::{Dropped, Release};
pub use drops::{Drops, Patch, Patches, Watched};
