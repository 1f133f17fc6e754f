//! Programs with sanitizers: under every door that puts the library into a program, they say and end as alone.

use std::process::Command;
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, host_with, stackglass};

/// Commands that put the library into a program.
const DOORS: [&[&str]; 6] = [
    &["run"],
    &["run", "--allocs"],
    &["record", "--quiet", "--delay", "100us", "--allocs"],
    &["record", "--quiet", "--delay", "100us", "--allocs", "--heap-at", "exit"],
    &["record", "--quiet", "--delay", "1ms", "--walltime", "--sampler", "preload"],
    &["record", "--quiet", "--delay", "100us", "--sampler", "preload"],
];
/// A snapshot of shadow memory takes over a minute.
const LONGEST: Duration = Duration::from_secs(30);

#[track_caller]
fn says_the_same(sanitizer: &str, before: &[&str]) {
    let program = host_with("ends", Language::C, &[&format!("-fsanitize={sanitizer}")]);
    let folder = Folder::new();
    let run = |command: &[&str]| {
        let mut words = command.to_vec();
        words.extend(before);
        words.extend([program.to_str().expect("a path is text"), "exit"]);
        let mut child = Command::new(words[0]);
        let output = child.args(&words[1..]).current_dir(folder.path()).output().expect("it can be started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let own = said.lines().filter(|line| !line.starts_with("stackglass: ")).map(str::to_owned);
        (String::from_utf8_lossy(&output.stdout).into_owned(), own.collect::<Vec<_>>(), output.status.code())
    };
    let alone = run(&["env"]);
    assert_eq!(alone, ("working\n".to_owned(), Vec::new(), Some(3)), "{sanitizer} alone");
    for door in DOORS {
        let mut command = vec![stackglass().to_str().expect("a path is text")];
        command.extend(door);
        command.push("--");
        let begin = Instant::now();
        assert_eq!(run(&command), alone, "{sanitizer}: {door:?}");
        assert!(begin.elapsed() < LONGEST, "{sanitizer}: {door:?} took {:?}", begin.elapsed());
    }
}

#[test]
fn address_sanitizer() {
    says_the_same("address", &[]);
}

#[test]
fn thread_sanitizer() {
    says_the_same("thread", &[]);
}

/// The launcher sees the shell; the library leaves the shell's child alone.
#[test]
fn a_child_with_thread_sanitizer() {
    says_the_same("thread", &["sh", "-c", "\"$@\"; exit $?", "sh"]);
}

#[test]
fn undefined_behaviour_and_leak_sanitizer() {
    says_the_same("undefined", &[]);
    says_the_same("leak", &[]);
}
