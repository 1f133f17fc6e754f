//! Walks of the calling thread's own stack that repeat: most frames are the same as in the last walk, and only
//! compared.
//!
//! A frame (pc, sp, rbp) determines its caller: the rule depends on the pc alone, and the words that the rule reads lie
//! at addresses that follow from sp and rbp. So if a frame of the last walk occurs again, and the words behind it still have
//! their values, all callers are the same as well. Comparing costs about a nanosecond for each frame, without any
//! lookup.
//!
//! A stack that belongs to the thread stays mapped while the thread runs. The stack of a fibre or of a signal handler lies anywhere,
//! and what lies behind it may be unmapped at any moment. The end of such a stack is not known either, so a walk may go on
//! behind it. There, only pages that the kernel has just found readable are read.
//!
//! The result of a walk is a *node*: the caller of the walk gives each frame a number that depends on the frame's lookup
//! address and on the node of its caller.

use crate::memory::{OwnModules, OwnStack, StackMemory, is_readable, keep_errno};
use crate::registers::thread_pointer;
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
const PAGE: u64 = 4096;

/// One frame, and how it follows from its callee. All fields are written and read as whole words: a wider read of fields that
/// were just written waits for the writes.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    pc: u64,
    sp: u64,
    rbp: u64,
    /// Where `rbp` was loaded from; 0 if the callee had the same.
    rbp_at: u64,
    node: u32,
    /// How it was found: [`EXACT`], and in the lowest byte 0 if the return address was read below `sp`. Otherwise it is the result
    /// of a complex rule, whose reads are `complex[n - 1]`; [`UNKNOWN`] if they were too many.
    how: u32,
}

/// The pc is that of an instruction to come, not a return address.
const EXACT: u32 = 1 << 8;
/// The words that led to a frame are not known: it is computed again.
const UNKNOWN: u8 = u8::MAX;

impl Frame {
    #[inline(always)]
    fn complex(&self) -> u8 {
        self.how as u8
    }
}

#[inline(always)]
fn lookup(pc: u64, how: u32) -> u64 {
    if how & EXACT != 0 { pc } else { pc.wrapping_sub(1) }
}

/// Places for a thread's own copies of rules, in the fastest cache of the CPU.
const RULES: usize = 256;

/// A copy of a rule. All zeros is for an address that no function has.
#[derive(Clone, Copy)]
#[repr(C)]
struct NearRule {
    lookup: u64,
    /// CFA minus its base in bytes.
    offset: u32,
    /// CFA minus the address of the saved rbp in bytes, 0 if rbp is the same in the caller.
    saved: u16,
    /// The base is rbp, else the stack pointer.
    from_rbp: bool,
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
    /// Memory from the stack pointer up to here can be read.
    limit: u64,
    /// It is the thread's own stack: all of it can be read.
    is_own: bool,
    complex_len: u8,
    cut: Option<Cut>,
    complex: [Reads; COMPLEX],
    scratch: Scratch,
    rules: [NearRule; RULES],
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
        let Start { mut pc, mut sp, mut rbp } = start;
        let (mut rbp_at, mut how) = (0, u32::from(UNKNOWN));
        let epoch = unwinder.epoch();
        if epoch != self.epoch || sp < self.stack_low || sp >= self.stack_high {
            self.restart(epoch, sp);
        } else if !self.is_own {
            self.check(epoch, sp);
        }
        let mut fresh = 0;
        let mut cut;
        let mut parent = 0;
        loop {
            while self.len > 0 && self.frames[self.len - 1].sp < sp {
                self.len -= 1;
            }
            if self.len > 0
                && let last = &mut self.frames[self.len - 1]
                && last.pc == pc
                && last.sp == sp
                && last.rbp == rbp
                && (last.how ^ how) & EXACT == 0
            {
                // It has another callee now.
                (last.rbp_at, last.how) = (rbp_at, how);
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
                self.len -= 1;
                let last = &self.frames[self.len];
                (pc, sp, rbp, rbp_at, how) = (last.pc, last.sp, last.rbp, last.rbp_at, last.how);
            }
            let Some(place) = self.fresh.get_mut(fresh) else {
                (cut, self.len) = (Some(Cut::Depth), 0);
                break;
            };
            (place.pc, place.sp, place.rbp, place.rbp_at, place.how) = (pc, sp, rbp, rbp_at, how);
            fresh += 1;
            if let Some(NearRule { offset, saved, from_rbp, .. }) = self.rule(unwinder, lookup(pc, how)) {
                let base = if from_rbp { rbp } else { sp };
                let cfa = base.wrapping_add(u64::from(offset));
                let saved_at = cfa.wrapping_sub(u64::from(saved));
                // Both words lie in the stack that holds this thread's stack pointer.
                let is_inside =
                    cfa > sp && cfa <= self.stack_high && cfa & 7 == 0 && saved_at >= sp.wrapping_sub(8);
                if is_inside && saved_at >= self.stack_low && (cfa <= self.limit || self.extends_to(cfa)) {
                    // SAFETY: `cfa - 8 >= sp - 7` and aligned, so at least `sp`, which is in the stack; `cfa <= limit`.
                    // `saved_at` is at least `stack_low`, and below `cfa` where it is read.
                    unsafe {
                        pc = *((cfa - 8) as *const u64);
                        if saved == 0 {
                            rbp_at = 0;
                        } else {
                            (rbp, rbp_at) = (*(saved_at as *const u64), saved_at);
                        }
                    }
                    (sp, how) = (cfa, 0);
                    if pc == 0 {
                        (cut, self.len) = (None, 0);
                        break;
                    }
                    continue;
                }
            }
            self.fresh_len = fresh;
            match self.caller_by_row(unwinder, OneStep { pc, sp, rbp, exact: how & EXACT != 0 }) {
                Ok((caller, complex)) => {
                    (pc, sp, rbp, rbp_at) = (caller.pc, caller.sp, caller.rbp, 0);
                    how = u32::from(complex) | if caller.exact { EXACT } else { 0 };
                }
                Err(reason) => {
                    (cut, self.len) = (reason, 0);
                    break;
                }
            }
        }
        if self.len + fresh > FRAMES {
            (cut, self.len, parent) = (Some(Cut::Depth), 0, 0);
        }
        self.cut = cut;
        for from in self.fresh[..fresh].iter().rev() {
            let Some(to) = self.frames.get_mut(self.len) else { break };
            (to.sp, to.rbp, to.rbp_at) = (from.sp, from.rbp, from.rbp_at);
            (to.pc, to.how) = (from.pc, from.how);
            parent = node(parent, lookup(to.pc, to.how));
            to.node = parent;
            self.len += 1;
        }
        CachedWalk { node: parent, new_frames: fresh, cut }
    }

    /// Forgets the last walk, which may have been interrupted.
    pub fn forget(&mut self) {
        (self.len, self.stack_low, self.stack_high) = (0, 0, 0);
    }

    /// The mapping that held the stack of the last walk.
    pub fn stack(&self) -> Range<u64> {
        self.stack_low..self.stack_high
    }

    /// Forgets the last walk and finds the stack that holds `sp`.
    #[cold]
    #[inline(never)]
    fn restart(&mut self, epoch: u64, sp: u64) {
        let stack = keep_errno(|| OwnStack::at(sp).range());
        (self.stack_low, self.stack_high) = (stack.start, stack.end);
        if epoch != self.epoch {
            self.rules.fill(NearRule { lookup: 0, offset: 0, saved: 0, from_rbp: false });
        }
        (self.len, self.complex_len, self.epoch) = (0, 0, epoch);
        let own_end = own_stack_end().filter(|end| stack.contains(end) && *end > sp);
        self.is_own = own_end.is_some();
        if let Some(end) = own_end {
            // What lies behind is another mapping, which the kernel has merged with that of the stack.
            self.stack_high = end & !7;
        }
        self.limit = self.stack_high;
    }

    /// On a stack that is not the thread's own: makes sure that the memory of the last walk can still be read.
    #[cold]
    #[inline(never)]
    fn check(&mut self, epoch: u64, sp: u64) {
        let top = if self.len > 0 { self.frames[0].sp } else { sp };
        self.limit = sp.next_multiple_of(PAGE).min(self.stack_high);
        if top > self.limit && !self.extends_to(top) {
            // The mapping has become another one, of which all can be read now.
            self.restart(epoch, sp);
        }
    }

    /// Whether the memory up to `end` can be read, on a stack that is not the thread's own.
    #[cold]
    #[inline(never)]
    fn extends_to(&mut self, end: u64) -> bool {
        if self.is_own || end > self.stack_high {
            return false;
        }
        let end = end.next_multiple_of(PAGE).min(self.stack_high);
        let is_mapped = end <= self.limit || keep_errno(|| is_readable(self.limit..end));
        if is_mapped {
            self.limit = self.limit.max(end);
        }
        is_mapped
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
            let same = match caller.complex() {
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

    /// The rule for an address, from the thread's own few or from the table of all threads.
    #[inline(always)]
    fn rule(&mut self, unwinder: &Unwinder, lookup: u64) -> Option<NearRule> {
        let place = &mut self.rules[(lookup ^ lookup >> 9) as usize % RULES];
        if place.lookup != lookup {
            let Some(Rule::Frame { from_rbp, cfa, rbp }) = unwinder.known_rule(lookup) else { return None };
            let (offset, saved) = (u32::from(cfa) * 8, u16::from(rbp) * 8);
            *place = NearRule { lookup, offset, saved, from_rbp };
        }
        Some(*place)
    }

    /// The caller of a frame by its whole rule, and how it was found. The error is the end of the stack: a reason, unless it is
    /// complete.
    #[cold]
    #[inline(never)]
    fn caller_by_row(&mut self, unwinder: &Unwinder, frame: OneStep) -> Result<(OneStep, u8), Option<Cut>> {
        self.extends_to(frame.sp + 8);
        let mut stack = OwnStack::within(self.stack_low..self.limit, frame.sp);
        let mut recorded = Recorded { stack: &mut stack, reads: Reads { len: 0, words: [(0, 0); READS] } };
        let scratch = &mut self.scratch;
        let step = keep_errno(|| {
            unwinder.with_modules(|modules, table| {
                let mut walker = Walker { modules, table: Some(table), memory: &OwnModules, scratch };
                walker.one_step(frame, &mut recorded)
            })
        });
        let reads = recorded.reads;
        let caller =
            step.ok_or(Some(Cut::NoModule))?.map_err(Some)?.filter(|caller| caller.pc != 0).ok_or(None)?;
        if caller.sp <= frame.sp || caller.sp > self.stack_high {
            // Another stack: that of the code that a signal interrupted.
            return Err(Some(Cut::UnreadableStack));
        }
        let complex = self.remember(reads);
        Ok((caller, complex))
    }

    /// Stores the reads of a complex rule.
    fn remember(&mut self, reads: Reads) -> u8 {
        let range = self.stack_low..self.stack_high;
        let all_inside = |reads: &Reads| {
            reads.words.iter().take(reads.len as usize).all(|(address, _)| is_inside(&range, *address))
        };
        if reads.len as usize > READS || !all_inside(&reads) || !self.is_own {
            return UNKNOWN;
        }
        if self.complex_len as usize == COMPLEX {
            // A frame whose place is used again must not be compared with the new words.
            let frames = self.frames[..self.len].iter_mut().chain(&mut self.fresh[..self.fresh_len]);
            frames.filter(|frame| frame.complex() != 0).for_each(|frame| frame.how |= u32::from(UNKNOWN));
            self.complex_len = 0;
        }
        self.complex[self.complex_len as usize] = reads;
        self.complex_len += 1;
        self.complex_len
    }
}

/// An address of the calling thread's own stack, above all of its frames; `None` if it is not known.
fn own_stack_end() -> Option<u64> {
    // SAFETY: no arguments.
    let is_first = unsafe { libc::syscall(libc::SYS_gettid) == libc::syscall(libc::SYS_getpid) };
    if is_first {
        // The kernel puts these bytes above the frames of the first thread.
        // SAFETY: reads the auxiliary vector.
        return Some(unsafe { libc::getauxval(libc::AT_RANDOM) });
    }
    // The C library puts what it knows of a thread at the end of the thread's stack.
    Some(thread_pointer())
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
