//! From file addresses to functions, inlined calls and lines, by the debug information.
//!
//! Three techniques make this fast on programs with hundreds of megabytes of debug information. `.debug_aranges` leads to
//! the needed units, and only those are opened ([`index`]). Each unit is walked once for all its addresses, and entries that
//! hold none of them are skipped by precomputed sizes ([`shapes`], [`functions`]). Line tables are executed, not stored
//! ([`lines`]).

pub mod abbreviations;
pub mod functions;
pub mod index;
pub mod leb;
pub mod line_program;
pub mod lines;
pub mod names;
pub mod needed;
pub mod scopes;
pub mod shapes;
pub mod split;
pub mod unit;
