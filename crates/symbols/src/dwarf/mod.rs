//! From file addresses to functions, inlined calls and lines, by the debug information.
//!
//! Three techniques make this fast on programs with hundreds of megabytes of debug information. `.debug_aranges` leads to
//! the needed units, and only those are opened ([`index`]). Each unit is walked once for all its addresses, and entries that
//! hold none of them are skipped by precomputed sizes ([`shapes`], [`functions`]). Line tables are executed, not stored
//! ([`lines`]).

pub(crate) mod abbreviations;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod leb;
pub(crate) mod line_program;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod scopes;
pub(crate) mod shapes;
pub(crate) mod split;
pub(crate) mod unit;
