//! What is made of a heap graph: answers to questions about it, and reports as text and for programs.
//!
//! [`HeapAnswers`] says what is alive, what holds it and what leaked; [`HeapText`] writes it. Texts look as those of
//! `stackglass_report`, whose parts they have.
//!
//! Nothing here reads files, asks the system or knows how snapshots are taken.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod answers;
pub mod reports;

pub use answers::HeapAnswers;
pub use reports::HeapText;
