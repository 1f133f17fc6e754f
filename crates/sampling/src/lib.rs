//! Rules of sampling that hold inside a program and outside of it.
//!
//! The sampler inside a program (`stackglass-sampler`) and the one that looks at a process from outside (`stackglass-attach`) get
//! their facts in different ways and follow the same rules: what to do about a thread ([`Observation`]), how its time is
//! measured ([`CpuAccount`]) and assigned to stacks ([`ThreadTime`]),
//! when the next tick comes ([`TickSchedule`], [`Random`]), how often sleeping threads are looked at ([`PollInterval`]), and which stack of a sleeping thread is known already ([`SleepCache`]).
//!
//! Nothing here makes a system call or allocates, so that it can run inside any program.
#![cfg_attr(not(test), no_std)]

mod call_share;
mod cpu_account;
mod decision;
mod hash;
mod poll_interval;
mod random;
mod sleep_cache;
mod thread_time;
mod tick_schedule;

pub use call_share::CallShare;
pub use cpu_account::{CpuAccount, Passed};
pub use decision::{LastStack, Observation, Step};
pub use hash::{hash, hash_index};
pub use poll_interval::PollInterval;
pub use random::Random;
pub use sleep_cache::{CachedStack, SPAN, SleepCache, SleepEntry};
pub use thread_time::{SampleSink, Stack, ThreadTime};
pub use tick_schedule::TickSchedule;
