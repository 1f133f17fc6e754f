//! What is made of a profile: trees, answers to questions, and reports as text.
//!
//! A [`Source`] is a recording, or a word buffer with its dictionary. `trees` counts its stacks; `queries` finds
//! callers, times of source lines and differences between two profiles; `reports` writes all of it as text, with
//! the parts in `text`. The complete report has every option of Julia's `Profile.print`; the summary answers "where did
//! the time go" without options.
//!
//! Nothing here reads files, asks the system or knows how samples are taken.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod executors;
mod file_pattern;
pub mod kinds;
pub mod library_code;
pub mod metric;
mod options;
pub mod order;
mod queries;
mod quirks;
mod reports;
mod source;
mod state_filter;
mod text;
mod trees;

pub use file_pattern::FilePattern;
pub use metric::{Metric, Unit};
pub use options::{Format, GroupBy, Pick, Recur, SortedBy, UnknownValue};
pub use queries::allocated_lines::AllocatedLines;
pub use queries::allocations::{self as allocation_queries, AllocationKey, AllocationTable};
pub use queries::callers::{self, Caller, Callers, CallersError};
pub use queries::comparison::{self, Comparison};
pub use queries::cut_reasons::{cut_meaning, why_incomplete};
pub use queries::hot::{HotKey, HotRow, HotTable, Place};
pub use queries::line_owners::{LineOwners, has_line};
pub use queries::picked::nothing_picked;
pub use queries::selection::{Selection, count_time};
pub use queries::stackless::{add_unaccounted, merge_threads, name_stackless, unaccounted_cpu};
pub use queries::uncertainty::standard_error;
pub use queries::waits::{Wait, Waits};
pub use quirks::Quirks;
pub use reports::allocations::{self, AllocationsText};
pub use reports::annotate::{self, Annotate};
pub use reports::callers::CallersText;
pub use reports::comparison::ComparisonText;
pub use reports::hot::{self, HotText};
pub use reports::peek::{self, Peek};
pub use reports::print::{
    BUFFER_FULL, FILE_COLUMNS, MOST_COLUMNS, NO_ALLOCATIONS, NO_SAMPLES, NO_SAMPLES_IN_GROUP, Report,
    ReportError, Written,
};
pub use reports::summary::{self, Summary};
pub use reports::tasks::{self, TasksText};
pub use source::Source;
pub use text::links::Links;
pub use text::style::Style;
pub use text::{columns, json, numbers, style, type_name};
pub use trees::call_tree::{self, CallTree, CallTrees};
