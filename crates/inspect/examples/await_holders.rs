//! Which tasks of a process hold its locks, and where the code that drops tasks could not be followed: `await_holders PID`.
//!
//! An aid for work on `crates/drop_code`. Addresses are those of the process; functions are named by the command
//! `addr2line`, if it exists.

use stackglass_inspect::tasks::LiveTasks;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid: u32 = std::env::args().nth(1).ok_or("which process?")?.parse()?;
    let mut live = LiveTasks::new(pid);
    let dump = live.read()?.0;
    let id = |task: &usize| dump.tasks[*task].id;
    for lock in &dump.locks {
        let waiters: Vec<u64> = lock.waiters.iter().map(id).collect();
        println!("{} {:#x}, waiters {waiters:?}", lock.kind.name(), lock.address);
        for holder in &lock.holders {
            println!(
                "  task {}: certain {}, described {}",
                id(&holder.task),
                holder.is_certain,
                holder.is_described
            );
        }
    }
    for deadlock in &dump.deadlocks {
        let tasks: Vec<u64> = deadlock.tasks.iter().map(id).collect();
        println!("deadlock {tasks:?}, certain {}, via {:?}", deadlock.is_certain, deadlock.via);
    }
    let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps.split('-').next().ok_or("no mappings")?;
    let start = u64::from_str_radix(start, 16)?;
    for stop in live.drop_stops()? {
        println!("task at {:#x} stops: {}", stop.task, stop.why);
        let mut names = Command::new("addr2line");
        names.args(["-f", "-C", "-e"]).arg(&program);
        names.args(
            stop.addresses.iter().take(8).map(|address| format!("{:#x}", address.saturating_sub(start))),
        );
        if let Ok(output) = names.output() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines()
                .step_by(2)
                .zip(&stop.addresses)
                .for_each(|(line, at)| println!("    {at:#x} {line}"));
        }
    }
    Ok(())
}
