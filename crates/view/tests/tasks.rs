//! Tasks as the page reads them: of which task each sample is, and where it waits; and dumps of tasks from anywhere.

use stackglass_profile::{
    AwaitKind, AwaitLocation, Location, Nanos, ProcessIndex, Recording, Sample, StackId, State, Task, TaskId,
    ThreadNumber,
};
use stackglass_view::{Beside, Facts, Packed, TaskDump, Tasks};
mod columns;
use columns::columns;

/// A stack of these functions with their lines, outermost first.
fn stack(recording: &mut Recording, frames: &[(&str, &str, u32)]) -> StackId {
    let mut leaf_first = Vec::new();
    for (function, file, line) in frames.iter().rev() {
        let kind = if *function == "[ready]" { AwaitKind::Polled } else { AwaitKind::Waiting };
        let module =
            AwaitLocation { kind, function: (*function).into(), file: (*file).into(), line: *line }.module();
        let module = Some(recording.intern_module(module));
        leaf_first.push(recording.stacks.intern_location(Location { module, offset: u64::from(*line) }));
    }
    recording.stacks.intern(&leaf_first)
}

/// Two tasks `price` and one without a name wait; samples are not in order of time.
fn server() -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1_000_000);
    let main = "/home/me/demo/src/main.rs";
    let lock = [("shop::price", main, 10), ("tokio::sync::batch_semaphore::Acquire", "", 0)];
    let sleep = [("shop::fetch", main, 23), ("tokio::time::sleep::Sleep", "", 0)];
    let ready = [("shop::price", main, 10), ("[ready]", "", 0)];
    let stacks = [&lock[..], &sleep, &ready].map(|frames| stack(&mut recording, frames));
    for (task, stack, clock) in [(6, 0, 300), (5, 0, 100), (5, 2, 200), (9, 1, 400), (0, 1, 500)] {
        recording.samples.push(Sample {
            stack: stacks[stack],
            thread: ThreadNumber(1),
            task,
            clock: Nanos(clock),
            state: State::Task,
            cut: None,
            hits: 1,
            time: Nanos(100),
            spread: Nanos(0),
        });
    }
    for id in [5, 6, 7] {
        let (name, file) = ("price\u{1b}".into(), "src/main.rs".into());
        let (id, process) = (TaskId(id), ProcessIndex(0));
        recording.tasks.push(Task { id, process, name, file, line: 48, waited: Nanos(0) });
    }
    recording.name_awaits();
    recording
}

#[test]
fn samples_have_their_tasks_and_lines() {
    let packed = Packed::new(server(), "shop");
    let columns = columns(&packed);
    // In order of time; numbers are given in this order.
    assert_eq!(columns["samples.task"], [1, 1, 2, 3, 0]);
    assert_eq!(columns["samples.wait"], [1, 2, 1, 3, 3]);
    assert_eq!(columns["samples.waiting"], [1, 0, 1, 1, 0]);
    assert_eq!(columns["tasks.kind"], [1, 1, 2]);
    let json = |name: &str| -> serde_json::Value { serde_json::from_slice(&columns[name]).unwrap() };
    assert_eq!(
        json("tasks.kinds"),
        serde_json::json!([{"name": "price\\u{1b}", "file": "src/main.rs", "line": 48}, {"name": "", "file": "", "line": 0}])
    );
    let file = "/home/me/demo/src/main.rs";
    assert_eq!(
        json("tasks.waits"),
        serde_json::json!([
            {"function": "shop::price", "file": file, "line": 10, "words": "waits in Acquire"},
            {"function": "shop::price", "file": file, "line": 10, "words": "waits for a worker"},
            {"function": "shop::fetch", "file": file, "line": 23, "words": "waits in Sleep"},
        ])
    );
    let head: serde_json::Value = serde_json::from_str(packed.head()).unwrap();
    assert_eq!(head["tasks"], serde_json::json!({"named": 3, "sampled": 3, "dump": null}));
}

#[test]
fn recordings_without_tasks_have_no_columns_of_them() {
    let packed = Packed::new(Recording::default(), "empty");
    assert!(!columns(&packed).keys().any(|name| name.starts_with("tasks.") || *name == "samples.task"));
    assert!(packed.head().contains("\"tasks\":null"));
}

#[test]
fn what_tasks_prints_is_read_and_anything_else_is_not() {
    let json = include_str!("tasks.json");
    let dump = TaskDump::read(json).unwrap();
    let packed = Packed::with(
        Recording::default(),
        "t",
        &Beside { tasks: Some(Tasks { name: "t.json", dump: &dump }), ..Beside::default() },
    );
    let packed_dump: serde_json::Value = serde_json::from_slice(&columns(&packed)["tasks.dump"]).unwrap();
    let whole: serde_json::Value = serde_json::from_str(json).unwrap();
    for (key, value) in packed_dump.as_object().unwrap() {
        match key.as_str() {
            // The page shows less of groups.
            "groups" => assert_eq!(value[0]["ids"], whole["groups"][0]["ids"]),
            "locks" => assert_eq!(value[0]["waiters"], whole["locks"][0]["waiters"]),
            _ => assert_eq!(value, &whole[key], "{key}"),
        }
    }
    // Control characters arrive as text.
    assert_eq!(packed_dump["groups"][1]["given_names"][0], "\\u{1b}[2Jfetch");
    for wrong in [
        "",
        "[]",
        "{\"pid\":1}",
        &json.replace("\"ids\":[", "\"ids\":[-1,"),
        &format!("{json}x"),
        &"[".repeat(100_000),
    ] {
        assert!(TaskDump::read(wrong).is_err(), "{wrong:.100}");
    }
}

#[test]
fn facts_are_there_as_they_were_given() {
    let facts = Facts {
        rows: vec![("end".to_owned(), "exited with status 0".to_owned())],
        parts: "process 7\n".to_owned(),
    };
    let packed =
        Packed::with(Recording::default(), "t", &Beside { facts: Some(&facts), ..Beside::default() });
    assert_eq!(columns(&packed)["facts.parts"], b"process 7\n");
    assert!(packed.head().contains(r#""facts":[["end","exited with status 0"]]"#), "{}", packed.head());
}
