//! Walks of the calling thread's own stack that repeat: most frames are the same as in the last walk, and only
//! compared.
//!
//! A frame (pc, sp, rbp) determines its caller: the rule depends on the pc alone, and the words that the rule reads lie
//! at addresses that follow from sp and rbp. So if a frame of the last walk occurs again, and the words behind it still have
//! their values, all callers are the same as well. Comparing costs about a nanosecond for each frame, without any
//! lookup.
//!
//! The result of a walk is a *node*: the caller of the walk gives each frame a number that depends on the frame's lookup
//! address and on the node of its caller.

use crate::memory::{OwnModules, OwnStack, StackMemory};
use crate::rules::Rule;
use crate::scratch::Scratch;
use crate::unwinder::Unwinder;
use crate::walk::{Cut, OneStep, Walker};
use std::ops::Range;

/// Deepest stack, in frames. Deeper stacks lose their outermost frames.
const FRAMES: usize = 2048;
/// Most words that a rule outside of the rule table may read for its result to be compared instead of computed again.
const READS: usize = 4;
/// Most frames of a walk with such rules.
const COMPLEX: usize = 8;

/// One frame, and how it follows from its callee.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    pc: u64,
    sp: u64,
    rbp: u64,
    /// Where `rbp` was loaded from; 0 if the callee had the same.
    rbp_at: u64,
    node: u32,
    exact: bool,
    /// 0: the return address was read below `sp`. Otherwise the result of a complex rule, whose reads are
    /// `complex[n - 1]`; [`UNKNOWN`] if they were too many.
    complex: u8,
}

/// The words that led to a frame are not known: it is computed again.
const UNKNOWN: u8 = u8::MAX;

impl Frame {
    fn lookup(&self) -> u64 {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }

    fn is_at(&self, other: &Frame) -> bool {
        self.pc == other.pc && self.sp == other.sp && self.rbp == other.rbp && self.exact == other.exact
    }
}

/// The words that a complex rule read.
#[derive(Clone, Copy)]
#[repr(C)]
struct Reads {
    len: u8,
    words: [(u64, u64); READS],
}

/// The registers at the start of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Return address of the function that walks, in the innermost frame.
    pub pc: u64,
    /// Stack pointer after the return to it.
    pub sp: u64,
    /// Frame pointer register.
    pub rbp: u64,
}

/// A finished walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedWalk {
    /// The node of the innermost frame.
    pub node: u32,
    /// Number of frames that were not in the last walk.
    pub new_frames: usize,
    /// Why the stack is incomplete, if it is.
    pub cut: Option<Cut>,
}

/// The last walk of a thread. All zeros is an empty cache, so that it can lie in fresh memory from the kernel, of which only
/// the used part is touched. About 170 KiB of address space.
#[repr(C)]
pub struct StackCache {
    len: usize,
    fresh_len: usize,
    epoch: u64,
    stack_low: u64,
    stack_high: u64,
    complex_len: u8,
    cut: Option<Cut>,
    complex: [Reads; COMPLEX],
    scratch: Scratch,
    /// The last walk, the root first.
    frames: [Frame; FRAMES],
    /// Frames of the current walk that are not in the last one, the innermost first.
    fresh: [Frame; FRAMES],
}

/// A reader that keeps what was read.
struct Recorded<'a> {
    stack: &'a mut OwnStack,
    reads: Reads,
}

impl StackMemory for Recorded<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let value = self.stack.read_u64(address)?;
        let len = self.reads.len as usize;
        if let Some(place) = self.reads.words.get_mut(len) {
            *place = (address, value);
        }
        self.reads.len = self.reads.len.saturating_add(1);
        Some(value)
    }
}

impl StackCache {
    /// Walks the calling thread's stack from `start`. `node(parent, lookup_address)` numbers a frame whose caller has the
    /// number `parent`, 0 for outermost frames; it is called for new frames only, the outermost first.
    ///
    /// # Safety
    /// `start` must be the state of the calling thread in a function that has not returned: its stack above `start.sp` is
    /// mapped. No other walk may use this cache meanwhile.
    #[inline]
    pub unsafe fn walk(
        &mut self,
        unwinder: &Unwinder,
        start: Start,
        node: &mut impl FnMut(u32, u64) -> u32,
    ) -> CachedWalk {
        let mut at = Frame {
            pc: start.pc,
            sp: start.sp,
            rbp: start.rbp,
            rbp_at: 0,
            node: 0,
            exact: false,
            complex: UNKNOWN,
        };
        let epoch = unwinder.epoch();
        if epoch != self.epoch || start.sp < self.stack_low || start.sp >= self.stack_high {
            self.restart(epoch, start.sp);
        }
        let mut fresh = 0;
        let mut cut;
        let mut parent = 0;
        loop {
            while self.len > 0 && self.frames[self.len - 1].sp < at.sp {
                self.len -= 1;
            }
            if self.len > 0 && self.frames[self.len - 1].is_at(&at) {
                // It has another callee now.
                let frame = &mut self.frames[self.len - 1];
                (frame.rbp_at, frame.complex) = (at.rbp_at, at.complex);
                // SAFETY: all these frames lie in the stack that holds `start.sp`, above it.
                let same_down_to = unsafe { self.unchanged() };
                if same_down_to == 0 {
                    parent = self.frames[self.len - 1].node;
                    cut = self.cut;
                    break;
                }
                // What called these frames has changed: they have other nodes now.
                while self.len > same_down_to + 1 && fresh < FRAMES {
                    self.len -= 1;
                    self.fresh[fresh] = self.frames[self.len];
                    fresh += 1;
                }
                at = self.frames[self.len - 1];
                self.len -= 1;
            }
            if fresh == FRAMES {
                (cut, self.len) = (Some(Cut::Depth), 0);
                break;
            }
            self.fresh[fresh] = at;
            fresh += 1;
            self.fresh_len = fresh;
            match self.caller(unwinder, &at) {
                Caller::Frame(caller) => at = caller,
                Caller::None(reason) => {
                    (cut, self.len) = (reason, 0);
                    break;
                }
            }
        }
        if self.len + fresh > FRAMES {
            (cut, self.len, parent) = (Some(Cut::Depth), 0, 0);
        }
        self.cut = cut;
        for index in (0..fresh).rev() {
            let mut frame = self.fresh[index];
            parent = node(parent, frame.lookup());
            frame.node = parent;
            self.frames[self.len] = frame;
            self.len += 1;
        }
        CachedWalk { node: parent, new_frames: fresh, cut }
    }

    /// The mapping that held the stack of the last walk.
    pub fn stack(&self) -> Range<u64> {
        self.stack_low..self.stack_high
    }

    /// Forgets the last walk and finds the stack that holds `sp`.
    #[cold]
    #[inline(never)]
    fn restart(&mut self, epoch: u64, sp: u64) {
        let stack = OwnStack::at(sp).range();
        (self.stack_low, self.stack_high) = (stack.start, stack.end);
        (self.len, self.complex_len, self.epoch) = (0, 0, epoch);
    }

    /// The index down to which the frames of the last walk still follow from their callees; 0 is the root.
    ///
    /// # Safety
    /// The words from the innermost frame's `sp` to the root's must be mapped.
    #[inline]
    unsafe fn unchanged(&self) -> usize {
        let mut index = self.len - 1;
        while index > 0 {
            let caller = &self.frames[index - 1];
            let same = match caller.complex {
                // SAFETY: both addresses were read by the last walk, inside this stack; the caller guarantees that it is
                // still mapped.
                0 => unsafe {
                    *((caller.sp - 8) as *const u64) == caller.pc
                        && (caller.rbp_at == 0 || *(caller.rbp_at as *const u64) == caller.rbp)
                },
                UNKNOWN => false,
                // SAFETY: as above; only reads inside the stack are kept.
                complex => unsafe { self.complex[complex as usize - 1].are_unchanged() },
            };
            if !same {
                return index;
            }
            index -= 1;
        }
        0
    }

    #[inline]
    fn caller(&mut self, unwinder: &Unwinder, frame: &Frame) -> Caller {
        if let Some(Rule::Frame { from_rbp, cfa, rbp }) = unwinder.known_rule(frame.lookup()) {
            let base = if from_rbp { frame.rbp } else { frame.sp };
            let sp = base.wrapping_add(u64::from(cfa) * 8);
            let rbp_at = sp.wrapping_sub(u64::from(rbp) * 8);
            let readable = sp > frame.sp && sp <= self.stack_high && sp & 7 == 0 && rbp_at >= self.stack_low;
            if readable && rbp_at >= frame.sp.wrapping_sub(8) {
                // SAFETY: both words lie in the stack that holds this thread's stack pointer: `stack_low <= rbp_at` and
                // `rbp_at < sp <= stack_high` (or no word is read there), `sp - 8 >= frame.sp >= stack_low`.
                let (pc, saved) = unsafe {
                    let pc = *((sp - 8) as *const u64);
                    (pc, if rbp == 0 { frame.rbp } else { *(rbp_at as *const u64) })
                };
                if pc == 0 {
                    return Caller::None(None);
                }
                let rbp_at = if rbp == 0 { 0 } else { rbp_at };
                return Caller::Frame(Frame {
                    pc,
                    sp,
                    rbp: saved,
                    rbp_at,
                    node: 0,
                    exact: false,
                    complex: 0,
                });
            }
        }
        self.caller_by_row(unwinder, frame)
    }

    #[cold]
    #[inline(never)]
    fn caller_by_row(&mut self, unwinder: &Unwinder, frame: &Frame) -> Caller {
        let mut stack = OwnStack::within(self.stack_low..self.stack_high, frame.sp);
        let mut recorded = Recorded { stack: &mut stack, reads: Reads { len: 0, words: [(0, 0); READS] } };
        let scratch = &mut self.scratch;
        let step = unwinder.with_modules(|modules, table| {
            let mut walker = Walker { modules, table: Some(table), memory: &OwnModules, scratch };
            walker.one_step(
                OneStep { pc: frame.pc, sp: frame.sp, rbp: frame.rbp, exact: frame.exact },
                &mut recorded,
            )
        });
        let reads = recorded.reads;
        match step {
            Some(Ok(Some(OneStep { pc, sp, rbp, exact }))) => {
                if pc == 0 {
                    return Caller::None(None);
                }
                if sp <= frame.sp || sp > self.stack_high {
                    // Another stack: that of the code that a signal interrupted.
                    return Caller::None(Some(Cut::UnreadableStack));
                }
                let complex = self.remember(reads);
                Caller::Frame(Frame { pc, sp, rbp, rbp_at: 0, node: 0, exact, complex })
            }
            Some(Ok(None)) => Caller::None(None),
            Some(Err(cut)) => Caller::None(Some(cut)),
            None => Caller::None(Some(Cut::NoModule)),
        }
    }

    /// Stores the reads of a complex rule.
    fn remember(&mut self, reads: Reads) -> u8 {
        let range = self.stack_low..self.stack_high;
        let all_inside = |reads: &Reads| {
            reads.words.iter().take(reads.len as usize).all(|(address, _)| is_inside(&range, *address))
        };
        if reads.len as usize > READS || !all_inside(&reads) {
            return UNKNOWN;
        }
        if self.complex_len as usize == COMPLEX {
            // A frame whose place is used again must not be compared with the new words.
            let frames = self.frames[..self.len].iter_mut().chain(&mut self.fresh[..self.fresh_len]);
            frames.filter(|frame| frame.complex != 0).for_each(|frame| frame.complex = UNKNOWN);
            self.complex_len = 0;
        }
        self.complex[self.complex_len as usize] = reads;
        self.complex_len += 1;
        self.complex_len
    }
}

fn is_inside(range: &Range<u64>, address: u64) -> bool {
    address & 7 == 0 && address >= range.start && address.saturating_add(8) <= range.end
}

impl Reads {
    /// # Safety
    /// The addresses must be mapped.
    unsafe fn are_unchanged(&self) -> bool {
        // SAFETY: by the caller.
        self.words
            .iter()
            .take(self.len as usize)
            .all(|(address, value)| unsafe { *(*address as *const u64) == *value })
    }
}

enum Caller {
    Frame(Frame),
    /// There is none, or it cannot be found, with the reason.
    None(Option<Cut>),
}
