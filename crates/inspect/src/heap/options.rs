//! How a heap snapshot is taken, as the user asks for it.

use stackglass_symbols::Options;
/// How a heap snapshot is taken.
#[derive(Clone, Debug, Default)]
pub struct TakeOptions {
    /// Give all nodes the size 1, so that retained sizes are numbers of nodes.
    pub all_one: bool,
    /// Name strings by their text. Without it, no contents of the program are in the snapshot.
    pub with_texts: bool,
    /// Leave the four part files, with the output as their prefix, instead of one file.
    pub streaming: bool,
    /// Make one node of all blocks of one type that one block holds and that hold nothing.
    pub group_small: bool,
    /// Read the process itself, which stays stopped meanwhile, instead of a copy.
    pub stop: bool,
    /// Interrupt system calls of the process, which may then return early.
    pub interrupt_calls: bool,
    /// Say which blocks of each stack something holds, if allocations are recorded.
    pub with_reached: bool,
    /// How names and layouts are found.
    pub symbols: Options,
}
