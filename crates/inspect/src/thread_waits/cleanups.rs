//! Which locks the frames of threads hold, by the code that would run if they were unwound now.
//!
//! The compiler makes a landing pad for each call, which drops what is live there, and no more. If it gives a lock back, then the frame
//! has the guard: in a variable, in a `Vec`, behind a `Box`. It needs no debug information.

use super::lock_state::LockState;
use foldhash::HashSet;
use stackglass_drop_code::{Drops, IsPad};
use stackglass_layouts::Layouts;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::pages::Pages;
use stackglass_process_view::stacks::StackFrame;
use stackglass_process_view::{LandingPad, LandingPads};

/// Most frames of a thread whose landing pads are followed.
const MOST_FRAMES: usize = 256;
/// Most bytes of a stack that are searched for addresses of locks, and how many of the outermost frame.
const MOST_STACK: u64 = 256 << 10;
const LAST_FRAME: u64 = 4096;
/// Most bytes of a lock before the word of its state.
const BEFORE: u64 = 64;
/// DWARF's number of the stack pointer.
const RSP: usize = 7;

/// A lock that a frame gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    /// Index of the thread.
    pub thread: usize,
    /// Index of its frame.
    pub frame: usize,
    /// Index of the lock.
    pub lock: usize,
    /// All code up to there was followed, also that of the frames within.
    pub is_certain: bool,
    /// It does so in its call, whatever that calls. Otherwise it does if it calls a function of Rust.
    pub calls_rust: bool,
}

/// What frames do when they are unwound.
#[derive(Default)]
pub(super) struct Cleanups {
    /// The locks that they give back.
    pub held: Vec<Held>,
    /// Frames, by thread and index, of which all is known that they drop.
    pub known: HashSet<(usize, usize)>,
    /// Locks, by thread, that a frame would take again: it has given them back for a while, as `MutexGuard::unlocked` does.
    pub lent: HashSet<(usize, usize)>,
    /// Frames that have nothing to drop, if what they have called can unwind them.
    pub empty: HashSet<(usize, usize)>,
}

/// The cleanups of threads with these frames, as far as they give locks back.
///
/// Threads with the address of such a lock on their stack come first: the number of instructions is limited. The others may have a guard in
/// the heap, or the address of a static variable in their code.
pub(super) fn of(
    pages: &Pages<'_>,
    layouts: &Layouts,
    modules: &[LoadedModule],
    threads: &[Vec<StackFrame>],
    locks: &[LockState],
) -> Cleanups {
    let reader = Reader {
        pages,
        pads: LandingPads::new(pages, modules),
        drops: Drops::of_frames(pages, layouts, modules),
        words: locks.iter().map(LockState::word).collect(),
        locks,
        unwinds: &|lookup| {
            let module = modules.iter().position(|module| module.module.range().contains(&lookup));
            module.and_then(|module| layouts.known_functions(module)).is_some_and(|known| known.unwinds)
        },
    };
    let mut cleanups = Cleanups::default();
    let (first, others): (Vec<usize>, Vec<usize>) =
        (0..threads.len()).partition(|thread| mentions(pages, &threads[*thread], locks));
    for thread in first.into_iter().chain(others) {
        reader.read(thread, &threads[thread], &mut cleanups);
    }
    cleanups
}

/// Whether a stack has the address of a lock, or of a value that begins shortly before it.
fn mentions(pages: &Pages<'_>, frames: &[StackFrame], locks: &[LockState]) -> bool {
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return false };
    let start = first.range.start.next_multiple_of(8);
    let size = last.range.start.saturating_sub(start).saturating_add(LAST_FRAME).min(MOST_STACK);
    let mut bytes = vec![0; size as usize];
    let count = pages.image().memory.read(start, &mut bytes);
    bytes[..count].chunks_exact(8).any(|word| {
        let word = u64::from_le_bytes(std::array::from_fn(|at| word[at]));
        locks.iter().any(|lock| lock.address.checked_sub(word).is_some_and(|offset| offset < BEFORE))
    })
}

/// What the landing pads of frames are read with.
struct Reader<'a> {
    pages: &'a Pages<'a>,
    pads: LandingPads<'a>,
    drops: Drops<'a>,
    locks: &'a [LockState],
    words: HashSet<u64>,
    /// Whether a panic would unwind the function with an address.
    unwinds: &'a dyn Fn(u64) -> bool,
}

impl Reader<'_> {
    fn read(&self, thread: usize, frames: &[StackFrame], cleanups: &mut Cleanups) {
        let mut are_whole = true;
        // The innermost one is in the kernel.
        for (number, frame) in frames.iter().enumerate().skip(1).take(MOST_FRAMES) {
            let Some(entry) = self.pads.of(frame.lookup) else { continue };
            let (pad, catches) = match entry.pad {
                LandingPad::Cleanup(pad) if frame.registers[RSP].is_some() => (pad, false),
                LandingPad::Catch(pad) if frame.registers[RSP].is_some() => (pad, true),
                LandingPad::Nothing => {
                    cleanups.empty.insert((thread, number));
                    continue;
                }
                LandingPad::NoTable if (self.unwinds)(frame.lookup) => {
                    cleanups.empty.insert((thread, number));
                    continue;
                }
                _ => continue,
            };
            let is_pad = self.drops.is_pad_of(&self.pads, &entry, frame.lookup);
            if is_pad == IsPad::Unknown {
                continue;
            }
            let calls_rust = is_pad == IsPad::Yes;
            let dropped = self.drops.of_landing_pad(pad, &frame.registers, &self.words);
            // What is behind the function that catches is normal code.
            if catches && !dropped.resumes {
                are_whole = false;
                continue;
            }
            for (lock, state) in self.locks.iter().enumerate() {
                if dropped.waits_for(state.address) {
                    cleanups.lent.insert((thread, lock));
                }
                let gives_back = |after| {
                    self.pages.word(state.word()).is_some_and(|before| state.gives_back(before, after))
                };
                if dropped.leaves(state.word()).is_some_and(gives_back) {
                    let is_first = dropped.changes(state.word()).flatten().is_some_and(gives_back);
                    let is_certain = are_whole && is_first;
                    cleanups.held.push(Held { thread, frame: number, lock, is_certain, calls_rust });
                }
            }
            // A function that catches may go on with guards.
            if dropped.is_whole && !catches {
                cleanups.known.insert((thread, number));
            }
            // What could not be followed may lock again what a frame around gives back.
            are_whole &= dropped.is_whole;
        }
    }
}
