//! `stackglass info --json`: the contents of a recording for programs, as documented in `docs/json.md`.

use crate::info_samples::{SampleTotals, thread_cpu};
use stackglass_profile::{End, Nanos, Process, Recording, TASKS_MODULE, Thread, is_await_module};
use stackglass_report::json::Object;
use std::io::{self, Write};

/// Writes it as one JSON object.
pub(crate) fn write(
    name: &str,
    recording: &Recording,
    samples: SampleTotals,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = &recording.info;
    let end = match info.end {
        Some(End::Exit(status)) => Object::new().raw("exit", status),
        Some(End::Signal(number)) => Object::new().raw("signal", number),
        Some(End::Running) => Object::new().flag("running", true),
        None => Object::new(),
    };
    let object = Object::new()
        .text("file", name)
        .texts("command", info.command.iter().map(String::as_str))
        .raw("end", end.end())
        .number("wall", info.wall.0)
        .number("delay", info.delay.0)
        .number("total", samples.cpu.0)
        .number("samples", samples.on_cpu)
        .number("other_stacks", samples.others)
        .number_or_null("kernel_cpu", info.kernel_cpu.map(|time| time.0))
        .number("own_cpu", info.own_cpu.0)
        .number("stack_nodes", recording.stacks.nodes().len() as u64)
        .number("locations", recording.stacks.locations().len() as u64)
        .flag("full", info.full)
        .text("machine", &info.machine)
        .text("writer", &info.writer)
        .texts("remarks", info.remarks.iter().map(String::as_str));
    let processes =
        recording.processes.iter().enumerate().map(|(index, process)| of_process(recording, index, process));
    let tasks = recording.tasks.iter().map(|task| {
        Object::new()
            .number("id", task.id.0)
            .text("name", &task.name)
            .text("file", &task.file)
            .number("line", u64::from(task.line))
    });
    let modules = recording
        .modules
        .iter()
        .filter(|module| &*module.path != TASKS_MODULE && !is_await_module(&module.path));
    let modules = modules.map(|module| {
        let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Object::new().text("path", &module.path).text("build_id", &id)
    });
    let object = object.list("processes", processes).list("tasks", tasks).list("modules", modules);
    writeln!(out, "{}", object.end())
}

fn of_process(recording: &Recording, index: usize, process: &Process) -> Object {
    let since_start = |time: Nanos| time.0.saturating_sub(recording.info.start.0);
    let threads = recording.threads.iter().enumerate();
    let threads = threads.filter(|(_, thread)| thread.process.0 as usize == index);
    let threads = threads.map(|(number, thread): (usize, &Thread)| {
        Object::new()
            .number("thread", number as u64 + 1)
            .text("name", &thread.name)
            .number("tid", u64::from(thread.tid))
            .number_or_null("cpu", thread_cpu(recording, thread).map(|cpu| cpu.0))
            .number("start", since_start(thread.start))
            .number_or_null("end", thread.end.map(since_start))
    });
    let counters = process.counters.iter();
    let counters = counters.fold(Object::new(), |object, (label, n)| object.named(label, *n));
    Object::new()
        .number("pid", u64::from(process.pid))
        .number("parent", u64::from(process.parent))
        .text("program", &process.exe)
        .texts("arguments", process.arguments.iter().map(String::as_str))
        .number("start", since_start(process.start))
        .number_or_null("end", process.end.map(since_start))
        .flag("forked", process.forked)
        .raw("counters", counters.end())
        .list("threads", threads)
}
