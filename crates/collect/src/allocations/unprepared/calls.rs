//! From calls and returns of allocator functions to allocations and frees, thread by thread.
//!
//! A function may call another one: `realloc` of no block calls `malloc`, and one allocator may call another. Only the outermost call counts. The return of a call may be
//! missing, because a record was lost or the thread ended in the call: the next call tells, since no function here calls itself.

use super::functions::Function;
use foldhash::HashMap;

/// Calls inside each other are fewer than this.
const DEEPEST: usize = 3;

/// A function of a process: what it does, and which of several that do so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Callee {
    pub function: Function,
    pub number: u32,
}

/// What a stack sample in an entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SampledCall<S> {
    pub callee: Callee,
    pub stack: S,
    /// Number of calls that it stands for.
    pub weight: u64,
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome<S> {
    /// A block was allocated.
    Allocated {
        block: u64,
        size: u64,
        /// The block that it replaces, 0 for none.
        replaces: u64,
        function: Function,
        /// Its stack and weight, if the call was sampled.
        sampled: Option<(S, u64)>,
    },
    /// A block was freed.
    Freed { block: u64 },
}

/// The calls in which a thread is.
#[derive(Debug)]
struct OpenCalls<S> {
    calls: Vec<(Callee, [u64; 4])>,
    sampled: Option<SampledCall<S>>,
}

/// The open calls of all threads.
#[derive(Debug, Default)]
pub(super) struct Calls<S> {
    threads: HashMap<u32, OpenCalls<S>>,
}

impl<S: Copy> Calls<S> {
    pub(super) fn new() -> Calls<S> {
        Calls { threads: HashMap::default() }
    }

    fn thread(&mut self, tid: u32) -> &mut OpenCalls<S> {
        self.threads.entry(tid).or_insert_with(|| OpenCalls { calls: Vec::new(), sampled: None })
    }

    /// A thread's stack was taken in the entry of a function, just before or after [`Calls::enter`].
    pub(super) fn sample(&mut self, tid: u32, sampled: SampledCall<S>) {
        let thread = self.thread(tid);
        // That of an inner call is of no use.
        let is_inner = thread.calls.first().is_some_and(|(outer, _)| *outer != sampled.callee);
        if !is_inner || thread.calls.len() > DEEPEST {
            thread.sampled = Some(sampled);
        }
    }

    /// A thread has called a function.
    pub(super) fn enter(&mut self, tid: u32, callee: Callee, arguments: [u64; 4]) -> Option<Outcome<S>> {
        if callee.function == Function::Free {
            return (arguments[0] != 0).then_some(Outcome::Freed { block: arguments[0] });
        }
        let thread = self.thread(tid);
        // No function here calls itself, and `malloc` calls nothing but `malloc` of another allocator.
        let is_stale = thread.calls.iter().any(|(open, _)| {
            *open == callee || open.function == Function::Malloc && callee.function != Function::Malloc
        });
        if is_stale || thread.calls.len() >= DEEPEST {
            thread.calls.clear();
        }
        thread.calls.push((callee, arguments));
        None
    }

    /// A function has returned to its caller.
    pub(super) fn leave(&mut self, tid: u32, callee: Callee, result: u64) -> Option<Outcome<S>> {
        let thread = self.threads.get_mut(&tid)?;
        let open = thread.calls.iter().rposition(|(open, _)| *open == callee)?;
        let (_, arguments) = thread.calls[open];
        thread.calls.truncate(open);
        if open > 0 {
            return None;
        }
        let sampled = thread.sampled.take().filter(|sampled| sampled.callee == callee);
        let function = callee.function;
        let sampled = sampled.map(|sampled| (sampled.stack, sampled.weight));
        let size = function.size(arguments);
        let replaces = function.replaced(arguments);
        let succeeded = if function == Function::PosixMemalign { result as u32 == 0 } else { result != 0 };
        match succeeded {
            true => Some(Outcome::Allocated { block: result, size, replaces, function, sampled }),
            false if function == Function::Realloc && size == 0 && replaces != 0 => {
                Some(Outcome::Freed { block: replaces })
            }
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Function::*;

    fn callee(function: Function) -> Callee {
        Callee { function, number: 0 }
    }

    fn allocated(block: u64, size: u64, replaces: u64, function: Function) -> Option<Outcome<char>> {
        Some(Outcome::Allocated { block, size, replaces, function, sampled: None })
    }

    #[test]
    fn only_the_outermost_call_counts() {
        let mut calls: Calls<char> = Calls::new();
        assert_eq!(calls.enter(1, callee(Realloc), [0, 40, 0, 0]), None);
        assert_eq!(calls.enter(1, callee(Malloc), [40, 0, 0, 0]), None);
        // Another thread.
        calls.enter(2, callee(Malloc), [8, 0, 0, 0]);
        assert_eq!(calls.leave(1, callee(Malloc), 0x1000), None);
        assert_eq!(calls.leave(1, callee(Realloc), 0x1000), allocated(0x1000, 40, 0, Realloc));
        assert_eq!(calls.leave(2, callee(Malloc), 0x2000), allocated(0x2000, 8, 0, Malloc));
        assert_eq!(calls.leave(2, callee(Malloc), 0x2000), None, "it was not called");
        assert_eq!(calls.enter(1, callee(Free), [0x1000, 0, 0, 0]), Some(Outcome::Freed { block: 0x1000 }));
        assert_eq!(calls.enter(1, callee(Free), [0, 0, 0, 0]), None);
    }

    #[test]
    fn an_allocator_may_call_another_one() {
        let mut calls: Calls<char> = Calls::new();
        let inner = Callee { function: Malloc, number: 1 };
        calls.enter(1, callee(Realloc), [0x1000, 40, 0, 0]);
        calls.enter(1, callee(Malloc), [40, 0, 0, 0]);
        calls.enter(1, inner, [56, 0, 0, 0]);
        assert_eq!(calls.leave(1, inner, 0x2000), None);
        assert_eq!(calls.leave(1, callee(Malloc), 0x2010), None);
        assert_eq!(calls.leave(1, callee(Realloc), 0x2010), allocated(0x2010, 40, 0x1000, Realloc));
    }

    #[test]
    fn failed_calls_allocate_nothing() {
        let mut calls: Calls<char> = Calls::new();
        calls.enter(1, callee(Malloc), [1 << 60, 0, 0, 0]);
        assert_eq!(calls.leave(1, callee(Malloc), 0), None);
        calls.enter(1, callee(Realloc), [0x1000, 1 << 60, 0, 0]);
        assert_eq!(calls.leave(1, callee(Realloc), 0), None, "the old block is still there");
        calls.enter(1, callee(Realloc), [0x1000, 0, 0, 0]);
        assert_eq!(calls.leave(1, callee(Realloc), 0), Some(Outcome::Freed { block: 0x1000 }));
        calls.enter(1, callee(PosixMemalign), [0x7000, 64, 640, 0]);
        assert_eq!(calls.leave(1, callee(PosixMemalign), 12), None, "ENOMEM");
        calls.enter(1, callee(PosixMemalign), [0x7000, 64, 640, 0]);
        assert_eq!(calls.leave(1, callee(PosixMemalign), 0), allocated(0, 640, 0, PosixMemalign));
    }

    #[test]
    fn a_lost_return_costs_one_allocation() {
        let mut calls: Calls<char> = Calls::new();
        calls.enter(1, callee(Malloc), [8, 0, 0, 0]);
        calls.enter(1, callee(Malloc), [16, 0, 0, 0]);
        assert_eq!(calls.leave(1, callee(Malloc), 0x1000), allocated(0x1000, 16, 0, Malloc));
        calls.enter(1, callee(Malloc), [8, 0, 0, 0]);
        calls.enter(1, callee(Realloc), [0x1000, 32, 0, 0]);
        assert_eq!(calls.leave(1, callee(Realloc), 0x2000), allocated(0x2000, 32, 0x1000, Realloc));
    }

    #[test]
    fn a_stack_belongs_to_the_outermost_call_in_whatever_order_it_comes() {
        let mut calls: Calls<char> = Calls::new();
        let sampled = |function, stack| SampledCall { callee: callee(function), stack, weight: 3 };
        calls.sample(1, sampled(Realloc, 'a'));
        calls.enter(1, callee(Realloc), [0, 40, 0, 0]);
        calls.sample(1, sampled(Malloc, 'b'));
        calls.enter(1, callee(Malloc), [40, 0, 0, 0]);
        calls.leave(1, callee(Malloc), 0x1000);
        let Some(Outcome::Allocated { sampled: Some(('a', 3)), .. }) =
            calls.leave(1, callee(Realloc), 0x1000)
        else {
            panic!("that of realloc")
        };
        calls.enter(1, callee(Malloc), [40, 0, 0, 0]);
        calls.sample(1, sampled(Malloc, 'c'));
        let Some(Outcome::Allocated { sampled: Some(('c', 3)), .. }) = calls.leave(1, callee(Malloc), 0x2000)
        else {
            panic!("its own")
        };
        calls.enter(1, callee(Malloc), [40, 0, 0, 0]);
        assert_eq!(calls.leave(1, callee(Malloc), 0x3000), allocated(0x3000, 40, 0, Malloc));
    }
}
