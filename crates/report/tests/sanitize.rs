//! Whatever names a recording holds, no text made of it controls a terminal or turns what stands around it.

use crate::made_up;
use crate::made_up::hostile::{ACTING, hostile};
use stackglass_profile::Recording;
use stackglass_report::annotate::SourceFile;
use stackglass_report::{
    AllocationKey, AllocationTable, AllocationsText, Annotate, Callers, CallersText, Comparison,
    ComparisonText, Format, GroupBy, Metric, Peek, Report, Source, Style, Summary, allocations,
};
use std::time::Duration;

/// All texts that can be made of a recording, each with what it is.
fn texts(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    let mut add = |name, out: Vec<u8>| texts.push((name, String::from_utf8(out).unwrap()));
    for everything in [false, true] {
        let mut out = Vec::new();
        Summary::new().everything(everything).write(recording, &mut out).unwrap();
        add("summary", out);
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
    // Ranges of sizes have no names.
    for key in AllocationKey::ALL.iter().filter(|key| **key != AllocationKey::Size) {
        let mut out = Vec::new();
        let text = AllocationsText::new().key(*key).everything(true);
        text.write(recording, &mut out).unwrap();
        add("allocations", out);
        let mut out = Vec::new();
        allocations::write_json(&AllocationTable::new(recording, *key, Metric::Bytes), &mut out).unwrap();
        add("JSON", out);
    }
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
        for (what, text) in texts(&hostile(&c.to_string())) {
            assert!(!text.contains(c), "{what} has {:?}:\n{}", c, text.escape_debug());
        }
    }
}

/// Else the test above would be content with names that were left out.
#[test]
fn what_would_act_is_written_out() {
    let all = texts(&hostile("\u{202e}"));
    for (what, text) in &all {
        let written = ["\\u{202e}[2J", "\\u202e[2J"];
        assert!(written.iter().any(|escaped| text.contains(escaped)), "{what}:\n{text}");
    }
    let kinds: std::collections::BTreeSet<&str> = all.iter().map(|(what, _)| *what).collect();
    assert_eq!(kinds.len(), 8);
}

#[test]
fn a_line_stays_a_line() {
    let forged = hostile("\n");
    let lines = |recording: &Recording| {
        texts(recording).into_iter().map(|(_, text)| text.lines().count()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&forged), lines(&hostile("x")));
}
