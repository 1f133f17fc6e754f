//! One file for each group of rows.

pub mod allocs;
pub mod attach;
pub mod await_stacks;
pub mod bursts;
pub mod cpu_time;
pub mod differences;
pub mod flamegraph;
pub mod graph;
pub mod heap;
pub mod memory;
pub mod parked;
pub mod report_time;
pub mod reports;
pub mod running;
pub mod sample_cost;
pub mod shares;
pub mod sleepers;
pub mod stacks;
pub mod start_stop;
pub mod symbols;
pub mod task_poll;
pub mod ticks;
pub mod unwinder;
pub mod wall_time;
pub mod whole_commands;
