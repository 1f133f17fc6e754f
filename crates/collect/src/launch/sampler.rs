//! The ways to sample a program that we start.

/// How a started program is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampler {
    /// The kernel takes stacks by perf events; nothing runs inside the program.
    Perf,
    /// This process stops each running thread briefly by ptrace; nothing runs inside the program.
    Ptrace,
    /// The preload library takes stacks, on a thread inside the program.
    Preload,
}
