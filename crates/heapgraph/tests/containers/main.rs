//! Programs that build known structures and print which blocks hold which. What is found by layouts and by the models of
//! containers must be the same.

mod process;

mod rust;
