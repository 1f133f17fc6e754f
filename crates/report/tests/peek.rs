//! What a peek says of known content: notices, groups, and the digest at its end.

use crate::made_up::Maker;
use stackglass_profile::{Nanos, ProcessIndex, Recording, State, Task, TaskId};
use stackglass_report::Peek;
use std::time::Duration;

const LOOP: &str = "app! app::main src/main.rs:9 > app! app::server::serve src/server.rs:30";
const PRICE: &str = "app! app::main src/main.rs:9 > app! app::shop::price src/shop.rs:41";
const COPY: &str =
    "app! app::main src/main.rs:9 > app! app::shop::price src/shop.rs:44 > c /lib/libc.so.6! memcpy";
const BLIND: &str = "app! app::main src/main.rs:9 > c /lib/libz.so.1! inflate > c /lib/libz.so.1! crc";
const NAP: &str = "app! app::main src/main.rs:9 > c /lib/libc.so.6! epoll_wait";

fn report(recording: &Recording, cols: usize) -> String {
    let mut out = Vec::new();
    Peek::new(Duration::from_secs(1)).cols(cols).report(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What stands behind the tree.
fn digest(text: &str) -> &str {
    &text[text.find("In short").expect(text)..]
}

/// A busy worker, one that naps, and one that only sleeps.
fn program() -> Maker {
    let mut maker = Maker::new(&["app"]);
    let process = maker.process("/bin/app", &["app"]);
    let [worker, napper, sleeper] = ["worker", "napper", "sleeper"].map(|name| maker.thread(process, name));
    let [looping, price, copy, nap, blind] = [LOOP, PRICE, COPY, NAP, BLIND].map(|text| maker.stack(text));
    maker.sample(worker, price, State::Awake, 500);
    maker.sample(worker, copy, State::Awake, 200);
    maker.sample(worker, looping, State::Waiting, 100);
    maker.sample(worker, nap, State::Asleep, 200);
    maker.sample(napper, blind, State::Awake, 30);
    maker.sample(napper, looping, State::Awake, 20);
    maker.sample(napper, nap, State::Asleep, 950);
    maker.sample(sleeper, nap, State::Asleep, 1000);
    maker
}

#[test]
fn the_end_says_where_the_time_went() {
    let text = report(&program().recording, 80);
    let told = "\
In short, of each thread's time, the busiest first:
Thread 1 (worker): 80%, 10% ready
  50%  app::shop::price                                           src/shop.rs:41
  20%  memcpy <- shop::price                                      src/shop.rs:44
  10%  app::server::serve                                       src/server.rs:30
Thread 2 (napper): 5%
   3%  crc <- app::main                                            src/main.rs:9
   2%  app::server::serve                                       src/server.rs:30
1 thread ran less than 1% of the time
";
    assert_eq!(digest(&text), told, "{text}");
}

#[test]
fn tasks_are_named_with_their_thread_and_only_where_there_are_some() {
    let mut maker = program();
    let text = report(&maker.recording, 80);
    assert!(text.contains("Thread 1 (worker) Total snapshots: 1000. Utilization: 80%\n"), "{text}");
    assert!(!text.contains("Task 0x"), "{text}");
    let task = |id, name: &str| Task {
        id: TaskId(id),
        process: ProcessIndex(0),
        name: name.into(),
        file: "src/shop.rs".into(),
        line: 3,
        waited: Nanos(0),
    };
    maker.recording.tasks = vec![task(7, "price"), task(8, "price"), task(9, "repair")];
    for (sample, task) in [(0, 7), (1, 8), (2, 9)] {
        maker.recording.samples[sample].task = task;
    }
    let text = report(&maker.recording, 100);
    assert!(text.contains(" Task 0x0000000000000007 (price, all of this name) Total"), "{text}");
    let heading = "Thread 1 (worker): 80%, 10% ready, tasks price 70%, repair 10%\n";
    assert!(digest(&text).contains(heading), "{text}");
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let mut maker = program();
    let long =
        format!("app! app::{}::{} src/{}.rs:7", "module".repeat(9), "work".repeat(20), "file".repeat(30));
    let (thread, stack) = (stackglass_profile::ThreadNumber(2), maker.stack(&long));
    maker.sample(thread, stack, State::Awake, 3000);
    maker.recording.threads[1].name = "a very long name of a thread, as processes of several have".into();
    maker.recording.processes[0].exe =
        "/a/long/way/down/to/where/programs/are/that/somebody/built/app".into();
    for cols in [50, 60, 80, 100] {
        let peek = Peek::new(Duration::from_secs(1)).cols(cols);
        let mut out = Vec::new();
        peek.begin(&mut out).unwrap();
        peek.threads(&maker.recording, &Default::default(), &mut out).unwrap();
        peek.end(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap() + digest(&report(&maker.recording, cols));
        let wide = text.lines().find(|line| line.chars().count() > cols);
        assert_eq!(wide, None, "{cols}: {text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("print followed by a 1.0 second profile."), "{text}");
    }
}

#[test]
fn many_threads_stay_few_lines() {
    let mut maker = Maker::new(&["app"]);
    let process = maker.process("/bin/app", &["app"]);
    let stack = maker.stack(LOOP);
    for number in 0..500 {
        let thread = maker.thread(process, &format!("worker-{number}"));
        maker.sample(thread, stack, State::Awake, 1000 - number);
    }
    let text = report(&maker.recording, 80);
    let end = digest(&text);
    assert!(
        end.contains("Thread 1 (worker-0): 100%\n") && end.ends_with("494 more threads ran as well\n"),
        "{end}"
    );
    assert!(end.lines().count() < 24, "{end}");
}
