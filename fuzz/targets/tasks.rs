#![no_main]

use stackglass_fuzz::{tasks, waiting};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Set in the process that is read.
const WAITS: &str = "STACKGLASS_FUZZ_WAITS";

static HOST: OnceLock<tasks::Host> = OnceLock::new();

/// Starts this program as the process to be read, and copies it.
fn host() -> tasks::Host {
    let executable = std::env::current_exe().expect("the program has a path").display().to_string();
    let mut child =
        Command::new(&executable).env(WAITS, "1").stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "READY"), "the tasks start");
    let host = tasks::Host::copy(child.id(), &executable);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    eprintln!("{} tasks", host.tasks());
    host
}

libfuzzer_sys::fuzz_target!(
    init: {
        if std::env::var_os(WAITS).is_some() {
            waiting::run();
        }
    },
    |bytes: &[u8]| tasks::check(HOST.get_or_init(host), bytes)
);
