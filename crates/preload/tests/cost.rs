//! Cost for the program: CPU, context switches, memory. Long, and only valid on an idle machine.

use crate::launcher::*;

/// CPU of the working thread, CPU of the process, switches of the parked, resident KiB.
fn parked(session: Option<&Session>, threads: usize, rounds: usize) -> [f64; 4] {
    let program = compile("parked", &[]);
    let arguments = [threads.to_string(), rounds.to_string()];
    let stdout = match session {
        Some(session) => {
            let run = session.run(session.command(&program).args(&arguments));
            assert!(run.status.success(), "{}", run.stderr);
            run.stdout
        }
        None => {
            let output = std::process::Command::new(&program).args(&arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        }
    };
    let figures: Vec<f64> = stdout.split_whitespace().map(|w| w.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

/// Medians of alternating pairs: figures without, figures with, and ratios of the first two.
fn pairs(threads: usize, rounds: usize, pairs: usize) -> ([f64; 4], [f64; 4], [f64; 2]) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        without.push(parked(None, threads, rounds));
        with.push(parked(Some(&Session::new()), threads, rounds));
    }
    let median = |runs: &[[f64; 4]], i: usize| {
        let mut values: Vec<f64> = runs.iter().map(|r| r[i]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (a, b) = ([0, 1, 2, 3].map(|i| median(&without, i)), [0, 1, 2, 3].map(|i| median(&with, i)));
    (a, b, [b[0] / a[0], b[1] / a[1]])
}

#[test]
#[ignore = "long: pairs of runs with a thousand parked threads"]
fn a_thousand_parked_threads() {
    let (without, with, [thread, process]) = pairs(1000, 400_000, 5);
    eprintln!("without {without:?} with {with:?} thread {thread:.4} process {process:.4}");
    assert!(thread <= 1.03, "the working thread: {thread}");
    assert!(process <= 1.10, "the process: {process}");
    assert!(with[2] <= without[2] + 10.0, "voluntary switches: {} -> {}", without[2], with[2]);
    let memory = with[3] - without[3];
    assert!(memory <= 32.0 * 1024.0, "{memory} KiB more");
}

#[test]
#[ignore = "long: pairs of runs"]
fn four_threads() {
    let (without, with, [thread, process]) = pairs(4, 400_000, 5);
    eprintln!("without {without:?} with {with:?} thread {thread:.4} process {process:.4}");
    let memory = with[3] - without[3];
    assert!(memory <= 16.0 * 1024.0, "{memory} KiB more");
}
