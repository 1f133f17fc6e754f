//! Runs another program and writes its cost and its end to a file.
//!
//! Around a profiler, it measures the profiler's whole process tree. Inside a profiler, it gives the end of the profiled
//! program, so that the time after it is the profiler's.

use crate::clock::{children_cpu, children_peak_kib, monotonic};
use crate::report::Report;
use std::process::{Command, ExitCode};

/// `FILE PROGRAM ARGS…`: the file gets wall and CPU time of the tree and the moment of its end.
pub fn run(arguments: &[String]) -> ExitCode {
    let [file, program, rest @ ..] = arguments else {
        eprintln!("measured FILE PROGRAM ARGS");
        return ExitCode::from(2);
    };
    let (begin, cpu_before) = (monotonic(), children_cpu());
    let status = match Command::new(program).args(rest).status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("cannot start {program}: {error}");
            return ExitCode::from(127);
        }
    };
    let end = monotonic();
    let mut report = Report::new("measured");
    report.number("wall_ns", (end - begin).as_nanos());
    report.number("tree_cpu_ns", (children_cpu() - cpu_before).as_nanos());
    report.number("peak_kib", children_peak_kib());
    report.number("end_ns", end.as_nanos());
    if let Err(error) = std::fs::write(file, report.to_string()) {
        eprintln!("cannot write {file}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
