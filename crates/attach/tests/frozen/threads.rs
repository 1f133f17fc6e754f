//! Many threads, and how long they are held up.

use crate::program::Program;
use stackglass_attach::frozen::{FrozenProcess, Options};
use std::time::Duration;

fn copies_of(threads: usize) {
    let (mut program, _) = Program::start("sweep", &[&threads.to_string()]);
    let mut least = Duration::MAX;
    for _ in 0..4 {
        let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
        assert_eq!(copy.threads().iter().filter(|thread| thread.registers.is_some()).count(), threads);
        println!("{threads} threads: {:?}", copy.pause());
        least = least.min(copy.pause().whole);
    }
    assert!(program.lives());
    // Some 40 ms on a quiet machine.
    assert!(least < Duration::from_secs(2), "{least:?}");
}

#[test]
fn five_hundred_threads() {
    copies_of(500);
}

#[test]
fn a_thousand_threads() {
    copies_of(1000);
}

#[test]
fn a_main_thread_that_has_used_its_mapped_stack() {
    let (mut program, ready) = Program::start("deep", &[]);
    assert_eq!(ready, "ready");
    for _ in 0..3 {
        let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
        assert!(copy.is_alive());
    }
    // getchar() returns -1 at the end of its input.
    assert_eq!(program.finish(), "299999");
}
