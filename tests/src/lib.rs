//! Whole programs under `stackglass record`: what came out of them, and of the recording.
//!
//! Each test runs a real program (a *host*, compiled here from `hosts/`, or a language's
//! interpreter) and asserts two things: the program behaved as it does alone, and the recording
//! is true, or one clear line says why there is none.
//!
//! * [`Record`] runs a program under the command.
//! * [`Outcome`] is what it said, how it ended, and the recording.
//! * [`Compare`] runs a program alone and recorded, and finds what differs.
//! * [`Folder`] is where a run happens; what was started there ends with it.
//! * [`host`] compiles a host once.

mod build;
mod compare;
mod folder;
mod outcome;
mod record;
mod truth;

pub use build::{Language, host, host_with, stackglass, workloads};
pub use compare::{Compare, Did, Equal};
pub use folder::Folder;
pub use outcome::Outcome;
pub use record::{Record, Running};
pub use truth::Seen;
