//! The process that takes a copy is killed at random moments. The program lives, and no copy runs on.

use crate::program::{Program, eventually, relatives};
use stackglass_attach::frozen::{FrozenProcess, Options};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the process to copy; set only for the process that is killed.
const TAKE: &str = "STACKGLASS_TEST_TAKE";

/// Not a test by itself: takes copies until it is killed.
#[test]
fn takes_copies_if_told_to() {
    let Ok(pid) = std::env::var(TAKE) else { return };
    let pid = pid.parse().unwrap();
    for _ in 0..10_000 {
        // Errors occur while the kernel still ends the copy of a taker killed before.
        if let Err(error) = FrozenProcess::copy(pid, &Options::default()) {
            eprintln!("{error}");
        }
    }
}

fn kill_takers(program: &str, times: u64) {
    let (mut program, _) = Program::start(program, &[]);
    let pid = program.pid();
    // A simple generator of numbers: the moments need no quality.
    let mut random = u64::from(pid);
    for _ in 0..times {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut taker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::takes_copies_if_told_to"])
            .env(TAKE, pid.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let taken = || {
            std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| !s.contains("TracerPid:\t0"))
        };
        eventually("the taker attaches", taken);
        std::thread::sleep(Duration::from_micros((random >> 33) % 20_000));
        taker.kill().unwrap();
        taker.wait().unwrap();
        assert!(program.lives());
    }
    eventually("no copy runs on", || relatives(pid).iter().all(|relative| relative.is_zombie));
    // It can still be copied.
    drop(FrozenProcess::copy(pid, &Options::default()).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    assert!(program.lives());
}

#[test]
fn the_program_survives_forty_kills() {
    kill_takers("sweep", 40);
}

#[test]
#[ignore = "long: kills 400 takers"]
fn the_program_survives_four_hundred_kills() {
    kill_takers("sweep", 200);
    kill_takers("calls", 200);
}
