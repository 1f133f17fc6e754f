//! One file for each group of rows.

pub mod allocs;
pub mod attach;
pub mod await_stacks;
pub mod heap;
pub mod sample_cost;
pub mod task_poll;
pub mod ticks;
pub mod wall_time;
pub mod whole_commands;
