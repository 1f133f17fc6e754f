//! The memory of a copy is that of one moment.

use crate::program::{Program, eventually, relatives};
use stackglass_attach::frozen::{FrozenProcess, Options, ProcessMemory};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const PAGES: u64 = 4096;

/// The numbers on all pages.
pub fn numbers(memory: &ProcessMemory, pages: u64) -> Vec<u64> {
    let read = |page| {
        let mut word = [0; 8];
        assert_eq!(memory.read(pages + page * 4096, &mut word), 8);
        u64::from_le_bytes(word)
    };
    (0..PAGES).map(read).collect()
}

pub fn assert_one_moment(numbers: &[u64]) {
    let first = numbers[0];
    let boundary = numbers.partition_point(|number| *number == first);
    assert!(numbers[boundary..].iter().all(|number| number + 1 == first), "{first} up to page {boundary}");
}

/// Waits until the word at `address` in the program itself is greater than `last`. How long that takes depends on the machine.
pub fn runs_on(program: &Program, address: u64, last: u64) {
    let memory = File::open(format!("/proc/{}/mem", program.pid())).unwrap();
    eventually("the program runs", || {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, address).unwrap();
        u64::from_le_bytes(word) > last
    });
}

#[test]
fn a_copy_is_of_one_moment_and_does_not_change() {
    let (mut program, line) = Program::start("sweep", &[]);
    let pages = u64::from_str_radix(&line, 16).unwrap();
    let mut last = 0;
    for _ in 0..5 {
        let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
        let before = numbers(copy.memory(), pages);
        assert_one_moment(&before);
        assert!(before[0] > last, "a copy is of the moment in which it is made");
        last = before[0];
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(numbers(copy.memory(), pages), before);
        assert!(copy.is_alive());
        let threads = copy.threads();
        assert_eq!(threads.len(), 4);
        assert_eq!(threads[0].tid, program.pid());
        for thread in threads {
            let registers = thread.registers.expect("all threads stop");
            let has = |address: u64| copy.mappings().iter().any(|mapping| mapping.range.contains(&address));
            let all = [registers[16], registers[19], registers[21]];
            assert!(all.into_iter().all(has), "rip, rsp, fs base: {registers:x?}");
        }
        assert!(copy.mappings().iter().any(|mapping| mapping.range.contains(&pages) && mapping.writable));
        let pause = copy.pause();
        assert!(pause.clone <= pause.whole, "{pause:?}: {:x?}", copy.threads());
        runs_on(&program, pages, last);
    }
    assert!(program.lives());
    eventually("all copies end", || relatives(program.pid()).is_empty());
}

#[test]
fn a_stopped_process_shows_itself_and_continues() {
    let (mut program, line) = Program::start("sweep", &[]);
    let pages = u64::from_str_radix(&line, 16).unwrap();
    let stopped = FrozenProcess::stop(program.pid(), &Options::default()).unwrap();
    let before = numbers(stopped.memory(), pages);
    assert_one_moment(&before);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(numbers(stopped.memory(), pages), before);
    assert_eq!(stopped.threads().len(), 4);
    drop(stopped);
    runs_on(&program, pages, before[0]);
    let stopped = FrozenProcess::stop(program.pid(), &Options::default()).unwrap();
    assert!(numbers(stopped.memory(), pages)[0] > before[0]);
    drop(stopped);
    assert!(program.lives());
}

#[test]
fn a_thread_that_does_little_but_page_faults_stands_still() {
    let (mut program, line) = Program::start("faults", &[]);
    let faults = u64::from_str_radix(&line, 16).unwrap();
    let (mut last, mut in_call) = (0, 0);
    for _ in 0..30 {
        let stopped = FrozenProcess::stop(program.pid(), &Options::default()).unwrap();
        let count = || {
            let mut word = [0; 8];
            assert_eq!(stopped.memory().read(faults, &mut word), 8);
            u64::from_le_bytes(word)
        };
        let before = count();
        assert!(before > last, "the program runs between two stops");
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(count(), before, "{:x?}", stopped.threads());
        // On a busy machine it may be in the call that gives its pages back, and is caught at its end.
        let registers = stopped.threads()[0].registers.expect("it stopped, or is in a call that is sampled");
        in_call += u32::from(registers[21] == u64::MAX);
        last = before;
        drop(stopped);
        runs_on(&program, faults, last);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(in_call <= 3, "it is seen in a call {in_call} times");
    assert!(program.lives());
}
