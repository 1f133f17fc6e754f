//! A copy keeps nothing in use that the program gives back.

use crate::program::{Program, is_root, unique};
use stackglass_attach::frozen::{FrozenProcess, Options};
use std::path::Path;
use std::time::Duration;

/// Copies a program that maps something, gives it back, and tries whether it is free.
fn is_free(case: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique(case));
    let (mut program, line) = Program::start("holds", &[case, path.to_str().expect("the path is text")]);
    assert_eq!(line, "ready");
    for _ in 0..15 {
        let copy = FrozenProcess::copy(program.pid(), &Options::default()).expect("it can be copied");
        // The program goes through several rounds.
        std::thread::sleep(Duration::from_millis(30));
        drop(copy);
    }
    assert_eq!(program.finish(), format!("{case}: 0 failed"));
}

#[test]
fn shared_memory_can_be_sealed() {
    is_free("seal");
}

#[test]
fn locks_of_mapped_files_end_with_their_last_descriptor() {
    for case in ["lock", "read", "description"] {
        is_free(case);
    }
}

#[test]
fn leases_are_granted_for_files_that_were_mapped() {
    is_free("lease");
}

#[test]
fn shared_memory_is_attached_once() {
    is_free("attached");
}

#[test]
fn file_systems_can_be_unmounted() {
    if !is_root() {
        return;
    }
    for case in ["mounted", "current"] {
        is_free(case);
    }
}
