//! Whatever names a recording holds, no text made of it controls a terminal or turns what stands around it.

mod made_up;

use made_up::Maker;
use stackglass_profile::symbols::{Missing, ModuleNote};
use stackglass_profile::{Cut, Frame, Nanos, ProcessIndex, Recording, ShortPath, State, Task, TaskId};
use stackglass_report::annotate::SourceFile;
use stackglass_report::{
    Annotate, Callers, CallersText, Comparison, ComparisonText, FirstScreen, Format, GroupBy, Peek, Report,
    Source, Style,
};
use std::time::Duration;

/// One of each class of characters that act: controls (C0, delete, C1), direction marks, embeddings and overrides,
/// isolates, separators, what has no width, fillers, selectors, annotations, tags, no characters.
const ACTING: [char; 22] = [
    '\u{7}',
    '\u{8}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{61c}',
    '\u{200e}',
    '\u{200f}',
    '\u{202a}',
    '\u{202e}',
    '\u{2066}',
    '\u{2069}',
    '\u{2028}',
    '\u{2029}',
    '\u{200b}',
    '\u{feff}',
    '\u{ad}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{fff9}',
    '\u{e0041}',
];

/// A recording in which everything has a name with this character in it.
fn hostile(c: char) -> Recording {
    let evil = |text: &str| format!("{text}{c}[2J");
    let mut maker = Maker::new(&[&evil("/bin/app"), &evil("argument")]);
    let mut threads = Vec::new();
    for exe in ["/bin/app", "/bin/other"] {
        let process = maker.process(&evil(exe), &[&evil("app"), &evil("argument")]);
        threads.extend(["worker", "sleeper"].map(|name| maker.thread(process, &evil(name))));
    }
    let main = maker.stack("app! app::main src/main.rs:9");
    let leaf = maker.stack("app! app::main src/main.rs:9 > app! app::work src/work.rs:3 > c libx.so! ?");
    let nap = maker.stack("app! app::main src/main.rs:9 > c libc.so.6! nanosleep");
    for thread in &threads {
        maker.sample(*thread, main, State::Awake, 100);
        maker.cut_sample(*thread, leaf, State::Awake, 200, Some(Cut(2)));
        maker.sample(*thread, nap, State::Asleep, 300);
    }
    let recording = &mut maker.recording;
    for (index, _) in recording.stacks.locations().to_vec().iter().enumerate() {
        let id = stackglass_profile::LocationId(index as u32);
        let frames: Vec<Frame> = recording.symbols.frames_of(id).cloned().collect();
        let renamed = |frame: Frame| Frame {
            func: if frame.func.is_empty() { frame.func.clone() } else { evil(&frame.func).into() },
            spec: Some(evil(&frame.func).into()),
            file: if frame.file.is_empty() { frame.file.clone() } else { evil(&frame.file).into() },
            module: evil(&frame.module).into(),
            krate: evil("app").into(),
            ..frame
        };
        recording.symbols.set(id, frames.into_iter().map(renamed).collect::<Vec<_>>());
    }
    let short = ShortPath { prefix: evil("@app").into(), rest: evil("work.rs").into() };
    recording.symbols.set_short_path(evil("src/work.rs").into(), short);
    for module in &mut recording.modules {
        module.path = evil(&module.path).into();
    }
    recording.symbols.note(ModuleNote { module: recording.modules[0].path.clone(), missing: Missing::File });
    for id in [1, 2] {
        recording.tasks.push(Task {
            id: TaskId(id),
            process: ProcessIndex(0),
            name: evil("task").into(),
            file: evil("src/task.rs").into(),
            line: 7,
            waited: Nanos(5),
        });
        recording.samples[id as usize].task = id;
    }
    recording.threads[0].blocked_signal = true;
    recording.about.remarks.push(evil("remark"));
    recording.about.machine = evil("machine");
    maker.recording
}

/// All texts that can be made of a recording, each with what it is.
fn texts(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    let mut add = |name, out: Vec<u8>| texts.push((name, String::from_utf8(out).unwrap()));
    for everything in [false, true] {
        let mut out = Vec::new();
        FirstScreen::new().everything(everything).write(recording, &mut out).unwrap();
        add("first screen", out);
    }
    for format in [Format::Tree, Format::Flat] {
        for group in [GroupBy::None, GroupBy::Thread, GroupBy::TaskThread] {
            for combine in [true, false] {
                let mut out = Vec::new();
                let report = Report::new().c(true).format(format).group_by(group).combine(combine);
                report.write(recording, &mut out).unwrap();
                add("report", out);
            }
        }
    }
    for func in ["work", "", "nanosleep"] {
        let func = func.to_owned();
        let answer = Callers::matching(move |name| name.contains(&func)).answer(recording).unwrap();
        let mut out = Vec::new();
        let text = CallersText::new(100, Style::Plain, None);
        text.write(&answer, Source::Recording(recording), &mut out).unwrap();
        add("callers", out);
    }
    let mut out = Vec::new();
    let line = format!("let x = \"{}\";", recording.threads[0].name);
    let mut source = |path: &str| SourceFile {
        found: Some(path.to_owned()),
        text: Some(vec![line.clone(); 20].join(
            "
",
        )),
        remark: Some(line.clone()),
    };
    Annotate::new().everything(true).write(recording, &mut source, &mut out).unwrap();
    add("annotate", out);
    let mut out = Vec::new();
    let comparison = Comparison::new(recording, &made_up::demo());
    let name = &*recording.processes[0].exe;
    ComparisonText::new(&comparison, 100, Style::Plain).all(true).write((name, name), &mut out).unwrap();
    add("diff", out);
    let mut out = Vec::new();
    let peek = Peek::new(Duration::from_secs(1)).cols(100);
    peek.threads(recording, &Default::default(), &mut out).unwrap();
    peek.report(recording, &mut out).unwrap();
    add("peek", out);
    texts
}

#[test]
fn no_name_acts_on_the_terminal() {
    for c in ACTING {
        for (what, text) in texts(&hostile(c)) {
            assert!(!text.contains(c), "{what} has {:?}:\n{}", c, text.escape_debug());
        }
    }
}

/// Else the test above would be content with names that were left out.
#[test]
fn what_would_act_is_written_out() {
    let all = texts(&hostile('\u{202e}'));
    for (what, text) in &all {
        assert!(text.contains("\\u{202e}[2J"), "{what}:\n{text}");
    }
    let kinds: std::collections::BTreeSet<&str> = all.iter().map(|(what, _)| *what).collect();
    assert_eq!(kinds.len(), 6);
}

#[test]
fn a_line_stays_a_line() {
    let forged = hostile('\n');
    let lines = |recording: &Recording| {
        texts(recording).into_iter().map(|(_, text)| text.lines().count()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&forged), lines(&hostile('x')));
}
