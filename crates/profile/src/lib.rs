//! The model of a profile and its reports.
//!
//! A [`Recording`] is what a profiled program left behind: processes, threads, modules, interned
//! stacks and samples that point to them. With [`Symbols`] added it can be shown: as a tree, as a
//! flat table, as a first screen. Nothing here reads files, asks the system anything or knows how
//! samples are taken.

mod absorb;
pub mod annotate;
pub mod call_tree;
pub mod callers;
mod callers_text;
pub mod columns;
pub mod comparison;
pub mod data;
pub mod dictionary;
mod excerpt;
pub mod expand;
mod file_pattern;
pub mod first_screen;
mod flatten;
pub mod frame;
mod function_pattern;
mod harmless;
pub mod ids;
pub mod kinds;
pub mod links;
mod numbers;
pub mod peek;
pub mod recording;
pub mod report;
mod short;
mod siblings;
pub mod snapshots;
pub mod source;
pub mod stacks;
pub mod style;
pub mod symbols;
mod task;
mod traces;
pub mod uncertainty;

pub use annotate::Annotate;
pub use call_tree::{CallTree, CallTrees};
pub use callers::{Caller, Callers, CallersError};
pub use callers_text::CallersText;
pub use comparison::{Comparison, ComparisonText};
pub use data::{Data, DataError};
pub use dictionary::Dictionary;
pub use file_pattern::FilePattern;
pub use first_screen::FirstScreen;
pub use flatten::{NoAddressLeft, flatten};
pub use frame::{Frame, ShortPath};
pub use harmless::harmless;
pub use ids::{Address, LocationId, ModuleIndex, Nanos, ProcessIndex, StackId, TaskId, ThreadNumber};
pub use links::Links;
pub use peek::Peek;
pub use recording::{About, Cut, End, Module, Process, Recording, Sample, SampleKind, State, Thread};
pub use report::{Report, ReportError};
pub use snapshots::{Snapshots, snapshots};
pub use source::Source;
pub use stacks::{Location, Stacks};
pub use style::Style;
pub use symbols::Symbols;
pub use task::{TASKS_MODULE, Task, WAITING};
pub use uncertainty::standard_error;
