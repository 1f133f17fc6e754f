//! Programs that repeat themselves, some in step with the delay: the shares of their functions are those of the thread's clock.

use stackglass_profile::Recording;
use std::process::{Command, Stdio};
use truth::{NamedStacks, shares};
use whole_programs::{Background, Folder, Language, Record, host, stackglass};

/// Rounds: their length in µs, the first function's part in per cent, and the pause between two of them in µs.
type Rounds = [u32; 3];

/// A loop in step with the delay, one nearly so, and bursts of some delays.
const SHAPES: [Rounds; 5] =
    [[1000, 30, 0], [1003, 30, 0], [2000, 50, 0], [4000, 75, 10_000], [2000, 50, 3000]];

fn arguments(rounds: Rounds, seconds: u32) -> [String; 4] {
    [rounds[0].to_string(), rounds[1].to_string(), rounds[2].to_string(), seconds.to_string()]
}

/// The part of the first function, by time, and its standard error for that number of stacks.
fn share_of_first(recording: &Recording) -> (f64, f64) {
    let shares = shares::by_function(&NamedStacks::of_recording(recording, "repeating"), "");
    let (first, second) = (shares["first"], shares["second"]);
    let share = first.time as f64 / (first.time + second.time) as f64;
    (share, (share * (1.0 - share) / (first.hits + second.hits) as f64).sqrt())
}

/// Runs add up: by chance, one of 370 is beyond 3 sigma, and a real deviation stays.
#[track_caller]
fn holds(rounds: Rounds, run: impl Fn(Rounds) -> Recording) {
    let (mut sum, mut variance) = (0.0, 0.0);
    for runs in 1..=3 {
        let (share, error) = share_of_first(&run(rounds));
        sum += share;
        variance += error * error;
        let off = (sum / f64::from(runs) - f64::from(rounds[1]) / 100.0).abs();
        eprintln!("{rounds:?}: {share:.3} ± {error:.3}");
        if off < 3.0 * variance.sqrt() / f64::from(runs) {
            return;
        }
    }
    panic!("{rounds:?}: {:.3} on average", sum / 3.0);
}

#[test]
fn a_process_that_runs_already() {
    let program = host("repeating", Language::C);
    holds_everywhere(|rounds| {
        let mut command = Command::new(&program);
        let running = Background::start(command.args(arguments(rounds, 0)).stdout(Stdio::null()));
        let folder = Folder::new();
        let file = folder.path().join("repeating.glass");
        let mut command = Command::new(stackglass());
        command.args(["record", "--quiet", "--duration", "3s", "--pid"]).arg(running.id().to_string());
        let output = command.arg("-o").arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        stackglass_files::read(&file).unwrap().0
    });
}

#[test]
#[ignore = "long: shares of wall time"]
fn a_program_that_is_started() {
    let program = host("repeating", Language::C);
    holds_everywhere(|rounds| Record::new(&program).args(arguments(rounds, 3)).run().recording());
}

#[track_caller]
fn holds_everywhere(run: impl Fn(Rounds) -> Recording) {
    for rounds in SHAPES {
        holds(rounds, &run);
    }
}
