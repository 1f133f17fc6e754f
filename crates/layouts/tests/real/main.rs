//! Layouts of real programs: compared with what the programs tell, and from damaged files.

mod allocations;
mod hostile;
#[allow(dead_code, reason = "the tests of symbols use more of it")]
#[path = "../../../symbols/tests/real/program.rs"]
mod program;
mod types;
