//! Pages that are read while a process stands still are those of one moment, and no second process is made.

use crate::moment::{PAGES, assert_one_moment, numbers, runs_on};
use crate::program::{Program, relatives};
use stackglass_attach::frozen::{FrozenProcess, Options, OtherPages, WorkingSet};

/// A program that writes all of its pages in turn, and where they are.
fn sweeping() -> (Program, u64) {
    let (program, line) = Program::start("sweep", &[]);
    (program, u64::from_str_radix(&line, 16).unwrap())
}

fn frozen(program: &Program, set: &WorkingSet, others: OtherPages) -> FrozenProcess {
    FrozenProcess::of_pages(program.pid(), set, others, &Options::default()).unwrap()
}

fn word(process: &FrozenProcess, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (process.memory().read(address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

#[test]
fn the_working_set_is_of_one_moment() {
    let (mut program, pages) = sweeping();
    let set = WorkingSet::default();
    // Nothing is known of these pages yet, so they are not read.
    let first = frozen(&program, &set, OtherPages::Missing);
    assert!(!first.is_incomplete());
    assert_eq!((word(&first, pages), first.is_incomplete()), (None, true));
    // All that is needed is read while the process stands still.
    let stopped = frozen(&program, &set, OtherPages::Stopped);
    let before = numbers(stopped.memory(), pages);
    assert_one_moment(&before);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(numbers(stopped.memory(), pages), before);
    assert!(!stopped.is_incomplete() && stopped.is_alive());
    drop(stopped);
    // Now they are known, and the process runs on while they are used.
    let mut last = before[0];
    for _ in 0..20 {
        runs_on(&program, pages, last);
        let process = frozen(&program, &set, OtherPages::Missing);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let numbers = numbers(process.memory(), pages);
        assert_one_moment(&numbers);
        assert!(numbers[0] > last, "pages are of the moment in which they are read");
        assert!(!process.is_incomplete() && process.is_alive());
        last = numbers[0];
        assert_eq!(process.threads().len(), 4);
        for thread in process.threads() {
            let registers = thread.registers.expect("all threads stop");
            assert!(word(&process, registers[19]).is_some(), "the top of each stack is read");
        }
        assert!(process.pause().whole > std::time::Duration::ZERO);
        assert!(relatives(program.pid()).is_empty(), "there is no second process");
    }
    assert!(program.lives());
}

#[test]
fn other_pages_are_read_later_if_that_is_wanted() {
    let (mut program, pages) = sweeping();
    let set = WorkingSet::default();
    let process = frozen(&program, &set, OtherPages::Live);
    let before = word(&process, pages).expect("other pages are read");
    let end = pages + (PAGES - 1) * 4096;
    runs_on(&program, end, before);
    assert!(word(&process, end) > Some(before));
    assert!(!process.is_incomplete());
    // That makes them no part of the working set.
    let next = frozen(&program, &set, OtherPages::Missing);
    assert_eq!(word(&next, pages), None);
    assert!(program.lives());
}

#[test]
fn memory_that_does_not_change_is_always_read() {
    let (mut program, _) = sweeping();
    let process = frozen(&program, &WorkingSet::default(), OtherPages::Missing);
    let is_code = |mapping: &&stackglass_attach::frozen::Mapping| mapping.executable && mapping.inode != 0;
    let code = process.mappings().iter().find(is_code).unwrap();
    let header = process.mappings().iter().find(|mapping| mapping.path == code.path).unwrap();
    assert_eq!(word(&process, header.range.start).map(|word| word as u32), Some(0x464c_457f));
    assert!(!process.is_incomplete());
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    assert!(!process.is_alive(), "what it lacks cannot be read any more");
}

#[test]
fn pages_that_were_never_written_are_zeros_and_are_not_made() {
    let (mut program, line) = Program::start("untouched", &[]);
    let area = u64::from_str_radix(&line, 16).unwrap();
    let set = WorkingSet::default();
    for others in [OtherPages::Stopped, OtherPages::Missing] {
        let process = frozen(&program, &set, others);
        assert_eq!([word(&process, area), word(&process, area + 4096)], [Some(7), Some(0)]);
        let mut present = [false; 2];
        process.memory().resident(area, &mut present);
        assert_eq!(present, [true, false]);
        assert!(!process.is_incomplete());
    }
    assert!(program.lives());
}
