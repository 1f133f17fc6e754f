//! The project's own commands: `cargo xtask help` lists them.
//!
//! `test` decides whether a change may land. `bench` measures cost and accuracy of the profiler, next to its peers.

mod bench;
mod conformance;
mod dist;
mod effects;
mod run;
mod test;
mod tools;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test          formatting, lints, docs, licences, all tests, a stress of 20 s (25 minutes on two CPUs)
cargo xtask test --full   the same with the long tests and many more random cases
cargo xtask test STEP …   only these steps; `cargo xtask test list` names them
cargo xtask bench         measure every row of bench/RESULTS.md, peers included
cargo xtask bench ROW …   only these rows; `cargo xtask bench list` names them
    --quick               fewer rounds, shorter runs: for a first look, not for RESULTS.md
    --peers FOLDER        folder of the peers (default: target/peers)
cargo xtask bench install install the peers into that folder
cargo xtask conformance   run recorded cases of other implementations against the reports
cargo xtask conformance DIR [--kinds KIND,…]  run the cases in another folder; see --help
cargo xtask effects       run third-party tools alone and recorded: output and exit status must be equal
cargo xtask effects ROW … only these rows; `cargo xtask effects list` names them
    --quick               without the third-party test suites (half an hour)
    --record FLAG         a flag for `stackglass record`, such as --record --sampler=preload
cargo xtask dist          make target/dist/stackglass-…: one static file for glibc from 2.17 on, and musl
cargo xtask dist try FOLDER …  the same, and record a program in these root file systems (needs root)
cargo xtask help          this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command. False if a check fails.
fn dispatch(arguments: &[&str]) -> Result<bool> {
    match arguments {
        ["test", rest @ ..] => test::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["effects", rest @ ..] => effects::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(true)
        }
        [other, ..] => bail!("there is no command {other:?}\n\n{HELP}"),
    }
}
