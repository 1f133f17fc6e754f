//! From file addresses to functions, inlined calls and lines, by the debug information.
//!
//! Three things keep this cheap on programs with hundreds of megabytes of it. `.debug_aranges`
//! leads to the units that are needed, and only those are opened ([`index`]). A unit is walked once
//! for all its wanted addresses, and what cannot hold one of them is skipped with precomputed
//! sizes ([`shapes`], [`functions`]). Line tables are executed without being stored ([`lines`]).

pub(crate) mod abbreviations;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod line_program;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod shapes;
pub(crate) mod split;
pub(crate) mod unit;
