//! Programs that build known structures and print which blocks hold which. What is found by layouts and by the models of
//! containers must be the same.

mod cpp;
mod process;
mod rust;
