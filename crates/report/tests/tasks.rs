//! Async tasks in reports: names in headings, a table on the summary, and what differs by wall time.

use crate::made_up::Maker;
use stackglass_profile::{
    Location, Module, Nanos, ProcessIndex, Recording, State, TASKS_MODULE, Task, TaskId, ThreadNumber,
};
use stackglass_report::{Format, GroupBy, Report, Source, Summary};

const MAIN: &str = "app! app::main src/main.rs:9";

fn task(id: u64, name: &str) -> Task {
    let (name, file) = (name.into(), "/src/app/src/serve.rs".into());
    Task { id: TaskId(id), process: ProcessIndex(0), name, file, line: 12, waited: Nanos(0) }
}

/// A program whose thread 1 polls three tasks, two of a kind, one without a name, and does something besides.
fn program(state: State) -> (Maker, ThreadNumber) {
    let mut maker = Maker::new(&["app"]);
    let process = maker.process("/bin/app", &["app"]);
    let thread = maker.thread(process, "worker");
    maker.recording.tasks = vec![task(7, "serve"), task(8, "serve")];
    let stack = maker.stack(MAIN);
    for (id, ms) in [(7, 50), (8, 25), (9, 15), (0, 10)] {
        maker.sample(thread, stack, state, ms);
        maker.recording.samples.last_mut().unwrap().task = id;
    }
    (maker, thread)
}

fn screen(recording: &Recording) -> String {
    let mut out = Vec::new();
    Summary::new().cols(100).write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn report<'a>(source: impl Into<Source<'a>>) -> String {
    let mut out = Vec::new();
    Report::new().format(Format::Flat).group_by(GroupBy::Task).write(source, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn headings_show_names_where_there_are_some() {
    let recording = program(State::Awake).0.recording;
    let (data, dictionary) = (recording.data(), recording.dictionary());
    for text in [report(&recording), report((&data, &dictionary))] {
        assert!(text.contains("Task 0x0000000000000007 (serve) Total snapshots: 50."), "{text}");
        assert!(text.contains("Task 0x0000000000000009 Total snapshots: 15."), "{text}");
        assert!(text.contains("Task 0x8000000000000001 Total snapshots: 10."), "{text}");
    }
}

#[test]
fn the_summary_has_a_line_for_each_kind_of_task() {
    let text = screen(&program(State::Awake).0.recording);
    let table = "    %       CPU    tasks  name
 75.0   75.0 ms        2  serve  src/serve.rs:12
 15.0   15.0 ms        1  unnamed
 10.0   10.0 ms           outside tasks
";
    assert!(text.contains(table), "{text}");
}

#[test]
fn by_wall_time_the_summary_speaks_of_snapshots_and_waits() {
    let (mut maker, thread) = program(State::Task);
    let recording = &mut maker.recording;
    recording.tasks[1].waited = Nanos(2_500_000_000);
    recording.info.kernel_cpu = Some(Nanos(9_000_000_000));
    let module = Some(recording.intern_module(Module { path: TASKS_MODULE.into(), build_id: [].into() }));
    let leaf = recording.stacks.intern_location(Location { module, offset: 0 });
    let kind = recording.stacks.intern_location(Location { module, offset: 7 });
    let stack = recording.stacks.intern(&[leaf, kind]);
    maker.sample(thread, stack, State::Task, 100);
    maker.recording.samples.last_mut().unwrap().task = 8;
    maker.recording.name_tasks();
    let text = screen(&maker.recording);
    let table = "    %      time    tasks  waiting  longest  name
 87.5    175 ms        2     57 %   2.50 s  serve  src/serve.rs:12
  7.5   15.0 ms        1    0.0 %        –  unnamed
  5.0   10.0 ms                             outside tasks
";
    assert!(text.contains(table), "{text}");
    assert!(text.contains("wall-time profile") && !text.contains("CPU"), "{text}");
    assert!(text.contains("samples of one of 3 tasks or of threads outside tasks"), "{text}");
    assert!(text.contains("task serve") && text.contains("[waiting]"), "{text}");
}
