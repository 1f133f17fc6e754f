//! Calls that move data in steps return all of it, and none returns EINTR, through each door that samples.

use std::process::{Child, Command, Stdio};
use whole_programs::{Folder, Language, host, stackglass};

/// Calls of each kind, and the longest time for them, ms.
const AMOUNT: [&str; 2] = ["2000", "120"];

fn bulk(folder: &Folder) -> Child {
    let file = std::fs::File::create(folder.path().join("did")).expect("a temporary file can be made");
    let mut program = Command::new(host("bulk", Language::C));
    program.arg("all").args(AMOUNT).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    program.spawn().expect("the program can be started")
}

/// What it printed: a line for each kind, and their sum.
#[track_caller]
fn is_whole(printed: &str, door: &str) {
    let whole = printed.lines().filter(|line| line.contains(": 0 short, 0 EINTR")).count();
    assert_eq!((whole, printed.lines().count()), (17, 17), "{door}:\n{printed}");
}

#[test]
fn recorded_programs_do_all_they_ask_for() {
    for sampler in ["perf", "ptrace"] {
        let folder = Folder::new();
        let mut command = Command::new(stackglass());
        command.args(["record", "-q", "--delay", "100us", "--sampler", sampler, "-o", "r.glass", "--"]);
        command.arg(host("bulk", Language::C)).arg("all").args(AMOUNT).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().expect("the command can be started");
        is_whole(&String::from_utf8_lossy(&output.stdout), sampler);
    }
}

#[test]
fn running_programs_do_all_they_ask_for() {
    let doors: [(&str, &[&str]); 4] = [
        ("perf", &["record", "-q", "--delay", "100us", "-o", "r.glass", "--pid"]),
        ("ptrace", &["record", "-q", "--delay", "100us", "-o", "r.glass", "--driver", "ptrace", "--pid"]),
        ("peek", &["peek", "--delay", "100us", "--duration", "200ms"]),
        ("top", &["top", "--json", "--delay", "100us"]),
    ];
    for (door, words) in doors {
        let folder = Folder::new();
        let mut program = bulk(&folder);
        let mut command = Command::new(stackglass());
        command.args(words).arg(program.id().to_string()).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut looks = 0;
        while program.try_wait().expect("a child can be waited for").is_none() {
            command.status().expect("the command can be started");
            looks += 1;
        }
        assert!(looks > 0, "{door}");
        let printed = std::fs::read_to_string(folder.path().join("did")).expect("it is there");
        is_whole(&printed, door);
    }
}
