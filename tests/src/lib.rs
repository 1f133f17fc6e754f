//! Whole programs under `stackglass record`: their behaviour, and the recording.
//!
//! Each test runs a real program: a *host*, compiled here from `hosts/`, or an interpreter of a language. It asserts that the
//! program behaves as it does alone. It also asserts that the recording is correct, or that one clear line tells why there
//! is none.
//!
//! * [`Record`] runs a program under the command.
//! * [`Outcome`] is its output, its exit status, and the recording.
//! * [`Compare`] runs a program alone and recorded, and finds differences.
//! * [`Folder`] is the folder of a run; its processes end with it.
//! * [`ended_by`] ends a command by a signal.
//! * [`allocations_below`] adds up the allocations of a function.
//! * [`Background`] is any other program, until it is dropped.
//! * [`BusyLoops`] keep the CPUs busy meanwhile.
//! * [`host`] compiles a host once, [`compiled`] any program of a test.
//! * [`repetitions`] is the number of repetitions of the same assertion.
//! * [`marked_lines`] knows the lines of the program `awaits`.

mod allocations;
mod background;
mod build;
mod busy_loops;
mod compare;
mod folder;
mod marks;
mod outcome;
mod record;
mod repetitions;
mod signalled;
mod truth;

pub use allocations::allocations_below;
pub use background::Background;
pub use build::{Language, awaits, compiled, host, host_with, stackglass, workloads};
pub use busy_loops::BusyLoops;
pub use compare::{Compare, Did, Equal};
pub use folder::Folder;
pub use marks::{marked_lines, with_lines};
pub use outcome::Outcome;
pub use record::{Record, Running};
pub use repetitions::repetitions;
pub use signalled::ended_by;
pub use truth::Seen;
