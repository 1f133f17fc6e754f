//! The flat table of the hottest parts: what it counts, how it looks, and its JSON.
//!
//! Goldens lie in `tests/goldens`; `STACKGLASS_BLESS=1` writes them anew, to be reviewed by eye.

use crate::goldens::check;
use crate::made_up;
use crate::made_up::Maker;
use stackglass_profile::{Nanos, ProcessIndex, Recording, State, Task, TaskId};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{HotKey, HotTable, HotText, Selection, Source, Style};

const MS: u64 = 1_000_000;

fn table(recording: &Recording, key: HotKey, states: StateFilter) -> HotTable {
    let mut recording = recording.clone();
    Selection::new(states).keep_in(&mut recording);
    HotTable::new(recording, key, states)
}

fn screen(recording: &Recording, table: &HotTable, cols: usize) -> String {
    let mut out = Vec::new();
    let text = HotText::new(cols, Style::Plain, None);
    text.write("demo", table, Source::Recording(recording), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Time in these states, and its samples.
fn counted(recording: &Recording, states: StateFilter) -> (u64, u64) {
    let samples = recording.samples.iter().filter(|sample| states.has_state(sample.state));
    samples.fold((0, 0), |(time, hits), sample| (time + sample.time.0, hits + u64::from(sample.hits)))
}

#[test]
fn every_key_has_the_same_total() {
    for recording in [made_up::demo(), made_up::build()] {
        for states in [StateFilter::Awake, StateFilter::Asleep, StateFilter::All] {
            let (time, samples) = counted(&recording, states);
            for key in HotKey::ALL {
                let table = table(&recording, *key, states);
                let own: u64 = table.rows.iter().map(|row| row.own).sum();
                let own_samples: u64 = table.rows.iter().map(|row| row.own_samples).sum();
                let all = (table.total, table.samples, own, own_samples);
                assert_eq!(all, (time, samples, time, samples), "{key:?} {states:?}");
                assert!(table.rows.iter().all(|row| row.own <= row.total && row.total <= time), "{key:?}");
                assert!(table.rows.is_sorted_by(|a, b| a.own >= b.own), "{key:?}");
            }
        }
    }
}

#[test]
fn rows_are_known() {
    let mut maker = Maker::new(&["demo"]);
    let process = maker.process("/home/me/demo/target/release/demo", &["demo"]);
    let (one, two) = (maker.thread(process, "one"), maker.thread(process, "two"));
    let parse = "demo::main /home/me/demo/src/main.rs:3 > demo::parse /home/me/demo/src/parse.rs:7";
    let copy = maker.stack(&format!("{parse} > c libc.so.6! memcpy string/memcpy.S:9"));
    let recursive = maker.stack(&format!("{parse} > demo::parse /home/me/demo/src/parse.rs:9"));
    let wait = maker.stack(&format!("{parse} > c libc.so.6! poll io/poll.c:29"));
    maker.sample(one, copy, State::Awake, 30);
    maker.sample(two, recursive, State::Awake, 10);
    maker.sample(two, wait, State::Asleep, 500);
    maker.sample(two, wait, State::Waiting, 7);
    let rows = |key, states| -> Vec<(String, u64, u64)> {
        let rows = table(&maker.recording, key, states).rows;
        rows.into_iter().map(|row| (row.name, row.own / MS, row.total / MS)).collect()
    };
    let row = |name: &str, own, total| (name.to_owned(), own, total);
    assert_eq!(
        rows(HotKey::Function, StateFilter::Awake),
        [row("memcpy", 30, 30), row("demo::parse", 10, 40), row("demo::main", 0, 40)]
    );
    assert_eq!(
        rows(HotKey::Line, StateFilter::Awake),
        [
            row("/home/me/demo/src/parse.rs:7", 30, 40),
            row("/home/me/demo/src/parse.rs:9", 10, 10),
            row("/home/me/demo/src/main.rs:3", 0, 40),
            row("string/memcpy.S:9", 0, 30)
        ],
        "a line owns what it calls in the C library"
    );
    assert_eq!(rows(HotKey::Module, StateFilter::Awake), [row("libc.so.6", 30, 30), row("demo", 10, 40)]);
    assert_eq!(rows(HotKey::Crate, StateFilter::Awake), [row("demo", 40, 40), row("libc.so.6", 0, 30)]);
    assert_eq!(rows(HotKey::Thread, StateFilter::Awake), [row("one", 30, 30), row("two", 10, 10)]);
    assert_eq!(rows(HotKey::Process, StateFilter::Awake), [row("demo 4200", 40, 40)]);
    assert_eq!(rows(HotKey::Function, StateFilter::Asleep)[0], row("poll", 500, 500));
    assert_eq!(rows(HotKey::Thread, StateFilter::All)[0], row("two", 517, 517), "ready is not asleep");

    let places = table(&maker.recording, HotKey::Function, StateFilter::Awake).rows;
    let place = places[1].place.as_ref().unwrap();
    assert_eq!((&*place.file, place.line), ("/home/me/demo/src/parse.rs", 7), "the line with the most time");
    // √(40 × ¾ × ¼) samples of 1 ms.
    let error = places[0].error.unwrap() / MS as f64;
    assert!((error - 2.738_613).abs() < 1e-6, "{error}");
    let asleep = table(&maker.recording, HotKey::Function, StateFilter::Asleep);
    assert!(asleep.rows.iter().all(|row| row.error.is_none()), "sleeping time is measured");
}

#[test]
fn selections_are_of_threads_and_frames() {
    let recording = made_up::demo();
    let total = |selection: Selection| {
        let mut recording = recording.clone();
        selection.keep_in(&mut recording);
        HotTable::new(recording, HotKey::Function, StateFilter::Awake).total / MS
    };
    let on_cpu = || Selection::new(StateFilter::Awake);
    let all = total(on_cpu());
    assert_eq!(total(on_cpu().threads(1)) + total(on_cpu().threads(2..=9)), all);
    let parsing = total(on_cpu().with_frame(|frame| frame.func.starts_with("serde_json")));
    assert_eq!(parsing, total(on_cpu().threads(1)), "the first thread only parses");
    assert_eq!(total(on_cpu().tasks(77)), 0);
}

#[test]
fn tables_fit_a_terminal() {
    let recording = made_up::demo();
    let mut text = String::new();
    for key in HotKey::ALL {
        text += &screen(&recording, &table(&recording, *key, StateFilter::Awake), 80);
        text += "\n";
    }
    text += &screen(&recording, &table(&recording, HotKey::Function, StateFilter::Asleep), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    check("hot-80.txt", &text);
    check("hot-120.txt", &screen(&recording, &table(&recording, HotKey::Function, StateFilter::Awake), 120));
    let build = made_up::build();
    check("hot-process-80.txt", &screen(&build, &table(&build, HotKey::Process, StateFilter::Awake), 80));
    check("hot-command-80.txt", &screen(&build, &table(&build, HotKey::Command, StateFilter::Awake), 80));
}

#[test]
fn processes_and_tasks_of_one_name_are_one_row() {
    let build = made_up::build();
    let total = |key| table(&build, key, StateFilter::Awake).total;
    assert_eq!(total(HotKey::Command), total(HotKey::Process));
    let commands = table(&build, HotKey::Command, StateFilter::Awake).rows;
    let processes = table(&build, HotKey::Process, StateFilter::Awake).rows;
    assert_eq!(commands.iter().map(|row| row.alike).sum::<u64>(), processes.len() as u64);
    let mut recording = made_up::demo();
    let name = |id: u64, name: &str| Task {
        id: TaskId(id),
        process: ProcessIndex(0),
        name: name.into(),
        file: "".into(),
        line: 0,
        waited: Nanos(0),
    };
    recording.tasks = vec![name(1, "serve"), name(2, "serve"), name(3, "flush")];
    for (number, sample) in recording.samples.iter_mut().enumerate() {
        sample.task = number as u64 % 5;
    }
    let rows = table(&recording, HotKey::Task, StateFilter::Awake).rows;
    let mut names: Vec<(&str, u64)> = rows.iter().map(|row| (&*row.name, row.alike)).collect();
    names.sort();
    assert_eq!(names, [("[no task]", 1), ("[tasks without a name]", 1), ("flush", 1), ("serve", 2)]);
}

#[test]
fn samples_without_times_are_counted() {
    let mut recording = made_up::demo();
    recording.samples.iter_mut().for_each(|sample| sample.time.0 = 0);
    recording.info.delay.0 = 0;
    let table = table(&recording, HotKey::Function, StateFilter::Awake);
    assert!(!table.timed);
    assert_eq!((table.total, table.samples), (table.samples, counted(&recording, StateFilter::Awake).1));
    let text = screen(&recording, &table, 80);
    assert!(
        text.starts_with(&format!("demo  {} samples, by function\n    %   own", table.samples)),
        "{text}"
    );
}

#[test]
fn the_first_line_says_what_shows_an_interpreters_functions() {
    let mut maker = Maker::new(&["python3"]);
    let process = maker.process("/usr/bin/python3.12", &["python3"]);
    let thread = maker.thread(process, "main");
    for function in 0..40 {
        let stack = maker.stack(&format!("c python3.12! f{function}"));
        maker.sample(thread, stack, State::Awake, 10);
    }
    let recording = maker.recording;
    let text = screen(&recording, &table(&recording, HotKey::Function, StateFilter::Awake), 80);
    assert!(text.starts_with("To see Python functions, set PYTHONPERFSUPPORT=1"), "{text}");
    assert!(text.lines().count() < 24, "it fits the terminal:\n{text}");
}
