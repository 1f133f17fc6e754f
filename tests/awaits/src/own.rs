//! What the program says of its own tasks, by the crate: `stackglass::task::dump()` and `profile_walltime!`.

use stackglass::model::task_dump::{AwaitFrame, AwaitPoint};
use stackglass::task::TaskExt;
use std::time::Duration;

/// Prints the dump: for each task its id, its given name, its source and its stack, with numbers of own lines.
pub fn print_dump() {
    let dump = stackglass::task::dump().expect("the tasks are read");
    for task in dump.tasks() {
        let name = task.given_name.as_deref().unwrap_or("-").replace(' ', "_");
        println!("TASK {} {name} {:?} {}", task.id, task.source, stack_text(&task.stack));
    }
    println!("DEADLOCKS {}", dump.model().deadlocks.len());
    println!("HOLDERS {}", dump.model().locks.iter().map(|lock| lock.holders.len()).sum::<usize>());
    dump.model().remarks.iter().for_each(|remark| println!("REMARK {remark}"));
    println!("FIRST {}", dump.to_string().lines().take(3).collect::<Vec<_>>().join(" | "));
}

/// A stack as numbers of lines in the files of this program.
fn stack_text(stack: &[AwaitFrame]) -> String {
    let text = |frame: &AwaitFrame| {
        let rest = stack_text(&frame.children);
        match &frame.point {
            AwaitPoint::Await(Some((file, line))) if file.contains("awaits/src/") => match rest.is_empty() {
                true => line.to_string(),
                false => format!("{line}>{rest}"),
            },
            AwaitPoint::Await(_) => rest,
            AwaitPoint::Leaf => {
                let rest = if rest.is_empty() { String::new() } else { format!(">{rest}") };
                format!("!{}{rest}", frame.function.rsplit("::").next().unwrap_or_default())
            }
            point => format!("?{point:?}").replace(' ', "_"),
        }
    };
    let branches: Vec<String> = stack.iter().map(text).collect();
    match &branches[..] {
        [] => String::new(),
        [one] => one.clone(),
        more => format!("({})", more.join(",")),
    }
}

async fn parked() {
    tokio::time::sleep(super::HOUR).await;
}

/// Profiles a task that waits, and prints the innermost functions of its samples, and the remarks.
pub fn print_walltime() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_time().build().expect("a runtime can be made");
    runtime.spawn(parked().task("parked"));
    stackglass::profile_walltime!(std::thread::sleep(Duration::from_secs(2)));
    let recording = stackglass::recording();
    let mut leaves: Vec<String> = Vec::new();
    for sample in recording.samples.iter().filter(|sample| sample.task != 0) {
        let leaf = recording.stacks.walk(sample.stack).next();
        let frame = leaf.and_then(|leaf| recording.symbols.frames_of(leaf).next());
        leaves.extend(frame.map(|frame| frame.func.to_string()));
    }
    leaves.sort();
    leaves.dedup();
    leaves.iter().for_each(|leaf| println!("LEAF {leaf}"));
    recording.info.remarks.iter().for_each(|remark| println!("REMARK {remark}"));
    println!("{}", stackglass::report(100));
}
