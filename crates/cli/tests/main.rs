//! The command as a user runs it. One binary, so that the tests compile soon.
#[path = "../../report/tests/made_up/mod.rs"]
mod made_up;
mod support;

mod allocations;
mod annotate;
mod attach;
mod attach_refusals;
mod callers;
mod cargo_stackglass;
mod clear;
mod convert;
mod flamegraph;
mod following;
mod heap;
mod heap_take;
mod hostile_names;
mod json_documented;
mod one_total;
mod own_allocator;
mod pass_through;
mod peeks;
mod refusals;
mod reports;
mod showing;
mod signals;
mod top;
mod track_allocation;
mod view;
mod view_against;
mod view_beside;
mod view_source;
