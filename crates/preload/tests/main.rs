//! Programs with the preload library. One binary, so that the tests compile soon.
mod launcher;

mod children;
mod confined;
mod cost;
mod endings;
mod ignored;
mod libraries;
mod odd_stacks;
mod sleepers;
mod stacks;
mod threads;
mod vforks;
mod waits;
