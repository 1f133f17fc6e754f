//! How long await stacks of a running process take: `await_speed PID [ROUNDS]`. For `cargo xtask bench tasks`.
//!
//! Prints one JSON object: bytes of the executable's `.debug_info`, the time in which all types are read, the time of the first
//! and of later answers, and the number of tasks. Times in ms.

use object::{Object, ObjectSection};
use stackglass_inspect::tasks::LiveTasks;
use stackglass_layouts::{Layouts, Wanted};
use stackglass_profile::Module;
use stackglass_symbols::Options;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid: u32 = arguments.next().ok_or("which process?")?.parse()?;
    let rounds: usize = arguments.next().map_or(Ok(10), |rounds| rounds.parse())?;
    let path = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let bytes = std::fs::read(&path)?;
    let debug_info =
        object::File::parse(&*bytes)?.section_by_name(".debug_info").map_or(0, |found| found.size());

    let module = Module { path: path.display().to_string().into(), build_id: [].into() };
    let mut index = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let modules = std::slice::from_ref(&module);
        let (layouts, _) =
            Layouts::read_with_locals(modules, &Options::default(), &[], &|_, _| 0, Wanted::Coroutines);
        index.push(start.elapsed().as_secs_f64() * 1e3);
        assert!(!layouts.is_empty(), "the executable has no types");
    }
    let mut live = LiveTasks::new(pid);
    let first = live.read()?.1.as_secs_f64() * 1e3;
    let (mut warm, mut tasks) = (Vec::new(), 0);
    for _ in 0..rounds {
        let (dump, time) = live.read()?;
        warm.push(time.as_secs_f64() * 1e3);
        tasks = dump.count();
    }
    println!(
        "{{\"debug_info\":{debug_info},\"index\":{index:?},\"first\":{first},\"warm\":{warm:?},\"tasks\":{tasks}}}"
    );
    Ok(())
}
