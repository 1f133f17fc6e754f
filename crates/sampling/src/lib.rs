//! Rules of sampling that hold inside a program and outside of it.
//!
//! The sampler inside a program (`stackglass-sampler`) and the one that looks at a process (`stackglass-collect`) get
//! their facts in different ways and follow the same rules: how CPU time is given to stacks ([`CpuAccount`]), when the
//! next tick comes ([`TickSchedule`], [`Random`]), what the kernel says of a thread ([`ThreadState`], [`SchedStat`]), and which stack
//! of a sleeping thread is known already ([`SleepCache`]).
//!
//! Nothing here makes a system call, or allocates, so that a guest in somebody's process can use it.
#![cfg_attr(not(test), no_std)]

mod cpu_account;
mod hash;
mod random;
mod sleep_cache;
mod thread_state;
mod tick_schedule;

pub use cpu_account::{CpuAccount, Passed};
pub use hash::{hash, hash_index};
pub use random::Random;
pub use sleep_cache::{SPAN, SleepCache, SleepEntry};
pub use thread_state::{Call, SchedStat, ThreadState};
pub use tick_schedule::TickSchedule;
