//! The JSON of reports on time: what is written for a small recording is what `docs/json.md` shows.

use crate::made_up::Maker;
use stackglass_profile::{Nanos, Recording, State};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{
    Annotate, Callers, CallersText, Comparison, ComparisonText, HotKey, HotTable, Selection, Source, Style,
    count_time, hot, summary,
};
use std::io::{self, Write};

/// A program that copies for 30 ms, computes for some, and sleeps for 10.
fn small(computing: u64) -> Recording {
    let mut maker = Maker::new(&["demo", "--fast"]);
    let process = maker.process("/bin/demo", &["demo"]);
    let main = maker.thread(process, "demo");
    let copy = maker.stack("demo::main /d/main.rs:3 > c libc.so.6! memcpy");
    let main_only = maker.stack("demo::main /d/main.rs:5");
    maker.sample(main, copy, State::Awake, 30);
    maker.sample(main, main_only, State::Awake, computing);
    maker.sample(main, copy, State::Asleep, 10);
    maker.recording
}

/// The same without sleeping threads.
fn on_cpu() -> Recording {
    let mut recording = small(10);
    Selection::new(StateFilter::Awake).keep_in(&mut recording);
    recording
}

/// Checks the first block of JSON below a heading.
fn check(heading: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    let written = String::from_utf8(out).unwrap();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("## `{heading}`\n")).expect("a heading");
    let (_, rest) = rest.split_once("```json\n").unwrap();
    let documented = rest.split_once("```").unwrap().0;
    assert_eq!(written, documented, "\n{written}");
}

#[test]
fn hot_is_as_documented() {
    let table = HotTable::new(on_cpu(), HotKey::Function, StateFilter::Awake);
    check("stackglass hot", |out| hot::write_json(&table, &on_cpu(), out));
}

#[test]
fn print_is_as_documented() {
    check("stackglass print", |out| summary::write_json(&small(10), false, out));
}

#[test]
fn callers_are_as_documented() {
    let mut recording = on_cpu();
    assert!(count_time(&mut recording, Nanos(1)));
    let source = Source::Recording(&recording);
    let answer = Callers::new("memcpy").answer(source).unwrap();
    let text = CallersText::new(80, Style::Plain, None).states(StateFilter::Awake).timed(true);
    check("stackglass callers", |out| text.write_json(&answer, source, out));
}

#[test]
fn annotate_is_as_documented() {
    check("stackglass annotate", |out| Annotate::new().write_json(&small(10), out));
}

#[test]
fn diff_is_as_documented() {
    let comparison = Comparison::new(&small(10), &small(30));
    let text = ComparisonText::new(&comparison, 80, Style::Plain);
    check("stackglass diff", |out| text.write_json(("a.glass", "b.glass"), out));
}
