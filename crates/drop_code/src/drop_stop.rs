//! Where code that drops a task cannot be followed, and why. An aid for work on the interpreter.

/// Code that drops a task, and that could not be followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropStop {
    /// Address of the task.
    pub task: u64,
    /// Addresses in the process: of the instruction, and of those to which the calls around it return, innermost first.
    pub addresses: Vec<u64>,
    /// Why: the instruction, or the limit that was reached.
    pub why: String,
}
