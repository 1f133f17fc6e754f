//! Wall-time profiles with await stacks: reports name the line of the reader's own code in which tasks wait, not the future of a
//! library in which the wait ends.

use crate::made_up::Maker;
use stackglass_profile::{
    AwaitKind, AwaitLocation, Location, Nanos, ProcessIndex, Recording, StackId, State, Task, TaskId,
};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{
    Callers, CallersText, Comparison, ComparisonText, HotKey, HotTable, HotText, Source, Style, Summary,
};

const SLEEP: &str = "tokio::time::sleep::Sleep";
const AXUM: &str = "/root/.cargo/registry/src/index/axum-0.8.9/src/serve/mod.rs";

/// A stack, outermost first: function, file and line.
fn stack(recording: &mut Recording, frames: &[(&str, &str, u32)]) -> StackId {
    let mut leaf_first = Vec::new();
    for (function, file, line) in frames.iter().rev() {
        let kind = if *function == "[ready]" { AwaitKind::Polled } else { AwaitKind::Waiting };
        let (function, file) = ((*function).into(), (*file).into());
        let module = AwaitLocation { kind, function, file, line: *line }.module();
        let module = Some(recording.intern_module(module));
        leaf_first.push(recording.stacks.intern_location(Location { module, offset: u64::from(*line) }));
    }
    recording.stacks.intern(&leaf_first)
}

/// A server whose tasks wait in two lines of `price`, and are polled there.
fn server(sleeping: u64) -> Recording {
    let mut maker = Maker::new(&["shop"]);
    let process = maker.process("/bin/shop", &["shop"]);
    let thread = maker.thread(process, "worker");
    let recording = &mut maker.recording;
    let main = "/home/me/demo/src/main.rs";
    let connection = ("axum::serve::handle_connection", AXUM, 400);
    let sleep = (SLEEP, "", 0);
    let price = |line| ("shop::price", main, line);
    let acquire = ("tokio::sync::batch_semaphore::Acquire", "", 0);
    let stacks = [
        (stack(recording, &[connection, price(42), sleep]), sleeping),
        (stack(recording, &[connection, price(45), acquire]), 200),
        (stack(recording, &[connection, price(45), ("[ready]", "", 0)]), 20),
        (stack(recording, &[connection, ("tokio::sync::notify::Notified", "", 0)]), 100),
    ];
    let mut samples: Vec<_> = stacks.into();
    samples.push((
        maker.stack("shop::price /home/me/demo/src/main.rs:40 > shop::burn /home/me/demo/src/main.rs:60"),
        80,
    ));
    for (stack, ms) in samples {
        maker.sample(thread, stack, State::Task, ms);
        maker.recording.samples.last_mut().unwrap().task = 7;
    }
    let (name, file) = ("serve".into(), "".into());
    let task = Task { id: TaskId(7), process: ProcessIndex(0), name, file, line: 0, waited: Nanos(0) };
    maker.recording.tasks.push(task);
    maker.recording.name_awaits();
    maker.recording
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn hot(recording: &Recording, key: HotKey, states: StateFilter) -> (HotTable, String) {
    let table = HotTable::new(recording.clone(), key, states);
    let source = Source::Recording(recording);
    let text = written(|out| HotText::new(80, Style::Plain, None).write("shop", &table, source, out));
    (table, text)
}

#[test]
fn hot_functions_have_a_row_for_each_line_that_waits() {
    let recording = server(600);
    for states in [StateFilter::Awake, StateFilter::All] {
        let (table, text) = hot(&recording, HotKey::Function, states);
        let rows: Vec<(&str, Option<i64>, Option<&str>, u64)> = table
            .rows
            .iter()
            .filter(|row| row.own > 0)
            .map(|row| {
                (
                    &*row.name,
                    row.place.as_ref().map(|at| at.line),
                    row.waits_in.as_deref(),
                    row.own / 1_000_000,
                )
            })
            .collect();
        let expected = [
            ("shop::price", Some(42), Some(SLEEP), 600),
            ("shop::price", Some(45), Some("tokio::sync::batch_semaphore::Acquire"), 200),
            ("axum::serve::handle_connection", Some(400), Some("tokio::sync::notify::Notified"), 100),
            ("shop::burn", Some(60), None, 80),
            ("shop::price", Some(45), Some("[ready]"), 20),
        ];
        assert_eq!(rows, expected);
        assert_eq!(table.rows.iter().map(|row| row.own).sum::<u64>(), table.total);
        assert!(text.contains("price  waits in Sleep"), "{text}");
        assert!(text.contains("waits in Acquire") && text.contains("waits for a worker"), "{text}");
        assert!(text.contains("main.rs:42") && text.contains("of wall time of tasks"), "{text}");
        assert!(!text.contains("CPU") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn lines_and_crates_own_their_waits() {
    let recording = server(600);
    let (table, text) = hot(&recording, HotKey::Line, StateFilter::Awake);
    let own = |line: i64| -> u64 {
        let rows = table.rows.iter().filter(|row| row.place.as_ref().is_some_and(|at| at.line == line));
        rows.map(|row| row.own / 1_000_000).sum()
    };
    assert_eq!((own(42), own(45), own(400), own(60)), (600, 220, 100, 80), "{text}");
    let (table, text) = hot(&recording, HotKey::Crate, StateFilter::Awake);
    assert_eq!((&*table.rows[0].name, table.rows[0].own), ("shop", 900_000_000), "{text}");
    let (table, text) = hot(&recording, HotKey::Module, StateFilter::Awake);
    assert_eq!((&*table.rows[0].name, table.rows[0].own), ("shop", 920_000_000), "{text}");
}

#[test]
fn the_summary_ends_with_the_lines_that_wait() {
    let screen = |sleeping| written(|out| Summary::new().write(&server(sleeping), out));
    let text = screen(600);
    let verdict = text.lines().last().unwrap();
    assert_eq!(verdict, "60 % of the time tasks wait in shop::price @demo/src/main.rs:42 (Sleep)", "{text}");
    assert!(text.contains("waits     60 % shop::price @demo/src/main.rs:42 (Sleep)"), "{text}");
    let own = text.lines().find(|line| line.starts_with("own time")).unwrap();
    assert!(own.contains("shop::burn") && !own.contains("Sleep"), "{text}");
    assert!(text.contains("lines     60 % @demo/src/main.rs:42"), "{text}");
    // No line has half of it.
    let text = screen(100);
    let verdict = text.lines().last().unwrap();
    assert!(verdict.starts_with("84 % of the time tasks wait: 40 % "), "{verdict}");
    assert!(verdict.contains("main.rs:45 (Acquire)") && verdict.chars().count() <= 80, "{verdict}");
}

#[test]
fn no_report_calls_it_cpu_time() {
    let (before, after) = (server(600), server(1200));
    let comparison = Comparison::new(&before, &after);
    let text = written(|out| ComparisonText::new(&comparison, 100, Style::Plain).write(("a", "b"), out));
    assert!(text.contains("wall time of tasks 1.00 s → 1.60 s"), "{text}");
    assert!(
        text.contains("shop::price (waits in Sleep)") && text.contains("own wall time of tasks"),
        "{text}"
    );
    assert!(!text.contains("CPU"), "{text}");
    let json = written(|out| ComparisonText::new(&comparison, 100, Style::Plain).write_json(("a", "b"), out));
    assert!(json.contains(r#""counts":"wall""#), "{json}");

    let mut recording = before.clone();
    stackglass_report::count_time(&mut recording, Nanos(1));
    let answer = Callers::new("Sleep").answer(&recording).unwrap();
    let callers = CallersText::new(100, Style::Plain, None).states(StateFilter::Awake).timed(true);
    let text = written(|out| callers.write(&answer, Source::Recording(&recording), out));
    assert!(text.contains("wall time of tasks") && !text.contains("CPU"), "{text}");
    assert!(text.contains("main.rs:42"), "{text}");

    let json = written(|out| {
        stackglass_report::hot::write_json(
            &hot(&before, HotKey::Function, StateFilter::Awake).0,
            &before,
            out,
        )
    });
    assert!(
        json.contains(r#""counts":"wall""#) && json.contains(r#""waits_in":"tokio::time::sleep::Sleep""#),
        "{json}"
    );
}
