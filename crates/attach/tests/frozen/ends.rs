//! The program ends or executes another while a copy lives.

use crate::program::{Program, eventually};
use stackglass_attach::frozen::{FrozenProcess, Options};
use std::time::{Duration, Instant};

#[test]
fn what_the_program_closes_is_closed() {
    let (mut program, _) = Program::start("leaves", &[]);
    let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
    program.order("c");
    // The end of the pipe is seen although the copy lives.
    assert_eq!(program.line(), "");
    assert!(copy.is_alive());
}

#[test]
fn a_copy_ends_with_its_program() {
    for order in ["x", "e"] {
        let (mut program, _) = Program::start("leaves", &[]);
        let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
        let start = Instant::now();
        program.order(order);
        assert_eq!(program.line(), "");
        assert!(start.elapsed() < Duration::from_secs(5));
        eventually("the copy ends", || !copy.is_alive());
        eventually("it cannot be read", || copy.memory().read(copy.mappings()[0].range.start, &mut [0]) == 0);
        if order == "x" {
            assert_eq!(program.child.wait().unwrap().code(), Some(7));
        }
    }
}

#[test]
fn a_killed_program_ends_its_copy_and_a_stopped_one_can_be_killed() {
    let (mut program, _) = Program::start("sweep", &[]);
    let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    eventually("the copy ends", || !copy.is_alive());
    let (mut program, _) = Program::start("sweep", &[]);
    let stopped = FrozenProcess::stop(program.pid(), &Options::default()).unwrap();
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    eventually("its end is noticed", || !stopped.is_alive());
}

#[test]
fn a_program_that_ends_at_any_moment_is_no_error_of_its_own() {
    for round in 0..20 {
        let (mut program, _) = Program::start("leaves", &[]);
        let pid = program.pid();
        let taking = std::thread::spawn(move || FrozenProcess::copy(pid, &Options::default()).map(drop));
        std::thread::sleep(Duration::from_micros(300 * round));
        program.order("x");
        // Either way the exit status is the program's own.
        // In this order: a wait by the tracing process could take the report of a stop away.
        let taken = taking.join().unwrap();
        let status = program.child.wait().unwrap();
        assert_eq!(status.code(), Some(7), "{status}, {:?}", taken.err());
    }
}
