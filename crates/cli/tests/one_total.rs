//! One recording has one CPU time and one number of samples, whatever report says it.

use crate::support::samples::recorded;
use crate::support::{Place, text};
use serde_json::Value;

/// The numbers of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Totals {
    /// CPU time in nanoseconds.
    time: u64,
    /// Samples on a CPU.
    samples: u64,
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let text = place.stdout_of(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} is missing in {value}"))
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().expect("a list").iter().map(|row| number(row, key)).sum()
}

/// The number that ends right before these words.
fn number_before(text: &str, words: &str) -> u64 {
    let (before, _) = text.split_once(words).unwrap_or_else(|| panic!("no `{words}` in {text}"));
    let digits: String =
        before.chars().rev().take_while(|c| c.is_ascii_digit() || c.is_whitespace()).collect();
    digits.chars().rev().filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
}

#[test]
fn all_reports_have_one_total() {
    let place = recorded();
    let recording = place.recording("r.glass");
    let on_cpu = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
    let of_recording = on_cpu.fold(Totals { time: 0, samples: 0 }, |sum, sample| Totals {
        time: sum.time + sample.time.0,
        samples: sum.samples + u64::from(sample.hits),
    });
    let asleep = recording.samples.iter().filter(|sample| !sample.state.uses_cpu());
    assert!(asleep.map(|sample| sample.time.0).sum::<u64>() > of_recording.time, "most threads sleep");
    assert!(of_recording.samples > 20, "{of_recording:?}");

    let totals = |value: &Value| Totals { time: number(value, "total"), samples: number(value, "samples") };
    for key in ["function", "line", "module", "crate", "thread", "process"] {
        let hot = json(&place, &["hot", "--by", key]);
        assert_eq!(totals(&hot), of_recording, "hot --by {key}");
        let rows = Totals { time: sum(&hot["rows"], "own"), samples: sum(&hot["rows"], "own_samples") };
        assert_eq!(rows, of_recording, "the rows of hot --by {key}");
    }
    let print = json(&place, &["print"]);
    assert_eq!(totals(&print), of_recording, "print");
    let threads = Totals { time: sum(&print["threads"], "cpu"), samples: sum(&print["threads"], "samples") };
    assert_eq!(threads, of_recording, "the threads of print");
    assert_eq!(totals(&json(&place, &["callers", "--regex", "."])), of_recording, "callers");
    let annotate = json(&place, &["annotate"]);
    assert_eq!(totals(&annotate), of_recording, "annotate");
    let lines = sum(&annotate["files"], "own") + number(&annotate, "without_lines");
    assert_eq!(lines, of_recording.time, "the files of annotate");
    let diff = json(&place, &["diff", "r.glass", "r.glass"]);
    for side in ["before", "after"] {
        let time = number(&diff, &format!("total_{side}"));
        let samples = number(&diff, &format!("samples_{side}"));
        assert_eq!(Totals { time, samples }, of_recording, "diff, {side}");
    }
    assert_eq!(totals(&json(&place, &["info"])), of_recording, "info");

    let samples = of_recording.samples;
    assert_eq!(number_before(&place.stdout_of(&["hot"]), " samples, by function"), samples);
    assert!(place.stdout_of(&["info"]).contains(&format!("  samples       {samples} in ")));
    for verb in [&["hot", "--asleep"][..], &["hot", "--wall"]] {
        assert_ne!(number(&json(&place, verb), "total"), of_recording.time, "{verb:?}");
    }

    // These have whole milliseconds.
    let delay = recording.info.delay.0;
    assert_eq!(delay, 1_000_000, "so that counts are milliseconds");
    let near = |count: u64, what: &str| {
        let off = (count * delay).abs_diff(of_recording.time);
        assert!(off <= 2 * delay, "{what}: {count} ms of {of_recording:?}");
    };
    let flat = place.stdout_of(&["print", "--format", "flat", "--c"]);
    near(number_before(&flat, " of CPU time. Time asleep"), "print --format flat");
    let tree = place.stdout_of(&["print", "--format", "tree"]);
    near(number_before(&tree, " of CPU time. Time asleep"), "print --format tree");
    let folded = place.stdout_of(&["convert", "r.glass", "-", "--to", "folded"]);
    let counts = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    let message = text(&place.run(["convert", "r.glass", "r.folded"]).stderr);
    let without_stack = |message: &str, words: &str| match message.contains(words) {
        true => number_before(message, words),
        false => 0,
    };
    near(counts.sum::<u64>() + without_stack(&message, " counts without a stack"), "folded stacks");
    let drawn = text(&place.run(["flamegraph", "r.glass"]).stderr);
    let drawn = number_before(&drawn, " ms of CPU time") + without_stack(&drawn, " ms without a stack)");
    near(drawn, "flamegraph");
}

#[test]
fn states_are_chosen_by_two_flags() {
    let place = recorded();
    let total = |flags: &[&str]| number(&json(&place, &[&["hot"][..], flags].concat()), "total");
    let (cpu, asleep, wall) = (total(&[]), total(&["--asleep"]), total(&["--wall"]));
    assert!(cpu + asleep <= wall, "ready threads are in --wall only: {cpu} {asleep} {wall}");
    for verb in [&["callers", "--regex", "."][..], &["annotate"]] {
        for (flag, expected) in [("--asleep", asleep), ("--wall", wall)] {
            let value = json(&place, &[verb, &[flag]].concat());
            assert_eq!(number(&value, "total"), expected, "{verb:?} {flag}");
            assert_eq!(value["counts"], flag.trim_start_matches('-'), "{verb:?}");
        }
        let output = place.run([verb, &["--asleep", "--wall"]].concat());
        assert_eq!(output.status.code(), Some(2), "{verb:?}");
    }
    let flat = |flag: &str| place.stdout_of(&["print", "--format", "flat", "--c", flag]);
    assert!(flat("--asleep").contains(" of time asleep. CPU time is not counted."));
    assert!(flat("--wall").contains("Utilization: "));
    let refused = place.run(["convert", "r.glass", "x.jlprof", "--wall"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
