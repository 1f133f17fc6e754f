//! Stripped programs: each function has its own share, in the summary, the tree and folded stacks.

use stackglass_report::Summary;
use std::collections::HashMap;
use whole_programs::{Language, Record, host_with};

/// Largest error of a share: some hundreds of stacks, on a machine with other load.
const OFF: f64 = 0.07;

#[track_caller]
fn is_near(what: &str, share: f64, wanted: f64) {
    assert!((share - wanted).abs() < OFF, "{what} has {share:.3}, not {wanted:.2}");
}

/// A program that is deleted while it runs, and has ended when its names are looked up.
#[test]
fn a_deleted_program_has_its_names() {
    let program = host_with("shares", Language::C, &[]);
    let program = program.to_str().expect("the path is text");
    let script = "cp \"$0\" gone && { { sleep 0.3; rm gone; } & exec ./gone; }";
    let outcome = Record::new("bash").args(["-c", script, program]).run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let recording = outcome.recording();
    let paths: Vec<&str> = recording.modules.iter().map(|module| &*module.path).collect();
    assert!(paths.iter().any(|path| path.ends_with("/gone")), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("map_files")), "{paths:?}");
    is_near("main", outcome.seen("gone").share("main"), 1.0);
}

#[test]
fn functions_of_a_stripped_program_have_their_own_shares() {
    let outcome = Record::new(host_with("shares", Language::C, &["-s"])).run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let names: Vec<&str> = outcome.stdout.lines().collect();
    let [alpha, beta, gamma, left, right, down, whole] = names[..] else { panic!("{names:?}") };

    // The share of each function, recursion counted once.
    let seen = outcome.seen("shares");
    for (name, share) in [
        (alpha, 0.5),
        (beta, 0.3),
        (gamma, 0.2),
        (left, 0.3),
        (right, 0.5),
        (down, 0.2),
        (whole, 1.0),
        ("main", 1.0),
    ] {
        is_near(name, seen.share(name), share);
    }

    let recording = outcome.recording();
    let mut screen = Vec::new();
    Summary::new().cols(80).write(&recording, &mut screen).unwrap();
    let screen = String::from_utf8(screen).unwrap();
    let own = screen.lines().find(|line| line.starts_with("own time")).expect(&screen);
    assert!([alpha, beta, gamma].iter().all(|name| own.contains(name)), "{screen}");
    assert!(screen.contains("is stripped"), "{screen}");
    // Percentages by function and caller. The caller of siblings is above them, so the order distinguishes paths.
    let rows: Vec<(f64, &str, bool)> = screen
        .lines()
        .skip_while(|line| !line.contains("own ms"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let percent = line.split_whitespace().next()?.parse::<f64>().ok()?;
            let name = line.split_whitespace().find(|word| word.starts_with("shares+") || *word == "main")?;
            Some((percent / 100.0, name, line.contains('↻')))
        })
        .collect();
    let after = |caller: &str, callee: &str| {
        let mut below = rows.iter().skip_while(|row| row.1 != caller);
        below.find(|row| row.1 == callee).unwrap_or_else(|| panic!("{callee} below {caller}:\n{screen}")).0
    };
    is_near("alpha for left", after(left, alpha), 0.3);
    is_near("alpha for right", after(right, alpha), 0.2);
    is_near("beta for right", after(right, beta), 0.3);
    is_near("gamma below the recursion", after(down, gamma), 0.2);
    for (_, name, recursive) in &rows {
        assert_eq!(*recursive, *name == down, "{name}:\n{screen}");
    }

    // Folded stacks include waiting for a CPU, which on a busy machine is some functions' by chance.
    let mut recording = recording;
    recording.samples.retain(|sample| sample.state.uses_cpu());
    let mut folded = Vec::new();
    stackglass_files::folded::write_to(&mut folded, &recording).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let mut counts: HashMap<&str, f64> = HashMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let ways = [
            ("alpha for left", format!("{left};{alpha}")),
            ("alpha for right", format!("{right};{alpha}")),
            ("beta", format!("{right};{beta}")),
            ("gamma", [[down; 6].join(";"), gamma.to_owned()].join(";")),
        ];
        let way = ways.iter().find(|(_, way)| stack.contains(way.as_str())).map_or("other", |(what, _)| what);
        *counts.entry(way).or_default() += count.parse::<f64>().unwrap();
    }
    let all: f64 = counts.values().sum();
    for (way, share) in [("alpha for left", 0.3), ("alpha for right", 0.2), ("beta", 0.3), ("gamma", 0.2)] {
        is_near(way, counts.get(way).copied().unwrap_or(0.0) / all, share);
    }
}
