//! The stacks that allocated the blocks of a heap snapshot.

use foldhash::HashMap;
use std::fmt;
use std::sync::Arc;

/// A stack in [`AllocationStacks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AllocationStack(pub u32);

impl AllocationStack {
    /// No stack is known.
    pub const UNKNOWN: AllocationStack = AllocationStack(0);
    /// The stack without frames.
    pub const ROOT: AllocationStack = AllocationStack(1);
}

/// A place in a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AllocatingFunction {
    /// Its name.
    pub name: Arc<str>,
    /// Path of the source file. Empty if it is unknown.
    pub file: Arc<str>,
    /// Line, from 1. 0 if it is unknown.
    pub line: u32,
}

impl fmt::Display for AllocatingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.file.rsplit('/').next() {
            Some(file) if !file.is_empty() && self.line > 0 => write!(f, " ({file}:{})", self.line),
            _ => Ok(()),
        }
    }
}

/// Stacks as a tree: each is a function and the stack of its caller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocationStacks {
    /// All functions.
    pub functions: Vec<AllocatingFunction>,
    /// Of each stack from number 2 on: that of the caller, which has a smaller number, and the index of the function.
    pub stacks: Vec<(AllocationStack, u32)>,
    known_functions: HashMap<AllocatingFunction, u32>,
    known_stacks: HashMap<(AllocationStack, u32), AllocationStack>,
}

/// Number of the first stack with a function.
const FIRST: u32 = 2;

impl AllocationStacks {
    /// These functions and stacks, to which none are added.
    pub fn from_parts(
        functions: Vec<AllocatingFunction>,
        stacks: Vec<(AllocationStack, u32)>,
    ) -> AllocationStacks {
        AllocationStacks { functions, stacks, ..AllocationStacks::default() }
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Adds a function as an entry of its own, or returns the known one.
    pub fn insert_function(&mut self, function: AllocatingFunction) -> u32 {
        let (functions, next) = (&mut self.functions, self.known_functions.len() as u32);
        *self.known_functions.entry(function).or_insert_with_key(|function| {
            functions.push(function.clone());
            next
        })
    }

    /// The stack of a function that another stack calls.
    pub fn insert(&mut self, caller: AllocationStack, function: u32) -> AllocationStack {
        let next = AllocationStack(self.stacks.len() as u32 + FIRST);
        let stacks = &mut self.stacks;
        *self.known_stacks.entry((caller, function)).or_insert_with(|| {
            stacks.push((caller, function));
            next
        })
    }

    /// The caller's stack, and the index of the function. `None` for stacks without functions.
    pub fn get(&self, stack: AllocationStack) -> Option<(AllocationStack, u32)> {
        self.stacks.get(stack.0.checked_sub(FIRST)? as usize).copied()
    }

    /// The innermost function of a stack.
    pub fn function(&self, stack: AllocationStack) -> Option<&AllocatingFunction> {
        self.functions.get(self.get(stack)?.1 as usize)
    }

    /// The functions of a stack, the innermost first.
    pub fn walk(&self, stack: AllocationStack) -> impl Iterator<Item = &AllocatingFunction> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (caller, function) = self.get(next)?;
            // Callers have smaller numbers: a walk ends.
            next = if caller < next { caller } else { AllocationStack::UNKNOWN };
            self.functions.get(function as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_callers() {
        let mut stacks = AllocationStacks::default();
        let function = |name: &str| AllocatingFunction { name: name.into(), file: "a/b.c".into(), line: 3 };
        let [main, grow] = ["main", "grow"].map(|name| stacks.insert_function(function(name)));
        assert_eq!(stacks.insert_function(function("main")), main);
        let outer = stacks.insert(AllocationStack::ROOT, main);
        let inner = stacks.insert(outer, grow);
        assert_eq!((outer.0, inner.0, stacks.insert(outer, grow)), (2, 3, inner));
        let names: Vec<String> = stacks.walk(inner).map(ToString::to_string).collect();
        assert_eq!(names, ["grow (b.c:3)", "main (b.c:3)"]);
        assert_eq!(stacks.walk(AllocationStack::ROOT).count() + stacks.walk(AllocationStack(9)).count(), 0);
        assert!(stacks.function(AllocationStack::UNKNOWN).is_none());
    }
}
