//! The frames of a Rust program's allocator at the inner end of a stack.
//!
//! A program may provide its allocator itself (`#[global_allocator]`). By its name and file, that code is the program's own, and the
//! function that calls it has the line of the `static`. But its callers are the reason for an allocation. What such code
//! allocates for itself still belongs to it: only the innermost call of the allocator counts.

use foldhash::HashMap;
use stackglass_profile::frame::is_rust_allocation;
use stackglass_profile::{Frame, Location, LocationId, Recording, StackId};

/// The trait that allocators implement, at the end of a function's full name without the method.
const TRAIT: &str = "core::alloc::global::GlobalAlloc>::";

/// Methods that the trait has for allocators without their own: they call `alloc`.
const DEFAULTS: &str = "core::alloc::global::GlobalAlloc::";

/// Whether the program calls its allocator by this function.
fn is_entry(frame: &Frame) -> bool {
    !frame.foreign
        && (is_rust_allocation(&frame.func)
            || frame.func.starts_with(DEFAULTS)
            || frame.spec.as_ref().is_some_and(|spec| spec.contains(TRAIT)))
}

/// The frames of a stack, the innermost first: each with its location and its index. A location without names is one frame without
/// an index.
pub(super) fn frames(
    recording: &Recording,
    stack: StackId,
) -> impl Iterator<Item = (LocationId, Option<u32>)> + '_ {
    recording.stacks.walk(stack).flat_map(|location| {
        let indices = recording.symbols.frame_indices(location);
        let unnamed = indices.is_empty().then_some(None);
        let indices = indices.iter().map(|index| Some(*index));
        unnamed.into_iter().chain(indices).map(move |index| (location, index))
    })
}

/// How many of the innermost frames of a stack belong to the allocator. `is_entry` says whether the frame with an index
/// [is one](is_entry). If all frames do, none does.
fn depth(recording: &Recording, stack: StackId, is_entry: impl Fn(u32) -> bool) -> usize {
    let mut depth = 0;
    for (number, (_, index)) in frames(recording, stack).enumerate() {
        match index.is_some_and(&is_entry) {
            // The method of the allocator, then the function that the compiler made.
            true => depth = number + 1,
            false if depth > 0 => return depth,
            false => {}
        }
    }
    0
}

/// The same for one stack of a recording, of which no others are asked for.
pub(super) fn depth_of(recording: &Recording, stack: StackId) -> usize {
    depth(recording, stack, |index| is_entry(&recording.symbols.frames()[index as usize]))
}

/// The frames of allocators in a recording.
pub(crate) struct AllocatorFrames {
    /// By frame index.
    are_entries: Vec<bool>,
    /// Whether there is any.
    is_empty: bool,
}

impl AllocatorFrames {
    pub(crate) fn from_recording(recording: &Recording) -> AllocatorFrames {
        let are_entries: Vec<bool> = recording.symbols.frames().iter().map(is_entry).collect();
        let is_empty = !are_entries.contains(&true);
        AllocatorFrames { are_entries, is_empty }
    }

    /// How many of the innermost frames of a stack belong to the allocator.
    pub(super) fn depth(&self, recording: &Recording, stack: StackId) -> usize {
        match self.is_empty {
            true => 0,
            false => depth(recording, stack, |index| self.are_entries[index as usize]),
        }
    }

    /// The indices of the frames of a stack outside of the allocator, the innermost first.
    pub(crate) fn outside<'a>(
        &self,
        recording: &'a Recording,
        stack: StackId,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let inside = self.depth(recording, stack);
        frames(recording, stack).skip(inside).filter_map(|(_, index)| index)
    }
}

/// Addresses of what is left of locations, in no module. Programs have no code there.
const RESTS: u64 = u64::MAX / 4;

/// Stacks without the frames of allocators.
pub(super) struct Outside {
    frames: AllocatorFrames,
    known: HashMap<StackId, StackId>,
    /// Locations of which an inlined allocator was removed, by the location and the number of removed frames.
    rests: HashMap<(LocationId, usize), LocationId>,
}

impl Outside {
    pub(super) fn from_recording(recording: &Recording) -> Outside {
        Outside {
            frames: AllocatorFrames::from_recording(recording),
            known: HashMap::default(),
            rests: HashMap::default(),
        }
    }

    /// A stack without the frames of the allocator.
    pub(super) fn stack(&mut self, recording: &mut Recording, stack: StackId) -> StackId {
        if self.frames.is_empty {
            return stack;
        }
        if let Some(known) = self.known.get(&stack) {
            return *known;
        }
        let mut left = self.frames.depth(recording, stack);
        let mut outside = stack;
        while left > 0
            && let Some((caller, location)) = recording.stacks.frame(outside)
        {
            let count = recording.symbols.frame_indices(location).len().max(1);
            outside = match count <= left {
                true => caller,
                false => {
                    let rest = self.rest(recording, location, left);
                    recording.stacks.extend(caller, rest)
                }
            };
            left = left.saturating_sub(count);
        }
        self.known.insert(stack, outside);
        outside
    }

    /// A location without its innermost frames.
    fn rest(&mut self, recording: &mut Recording, location: LocationId, removed: usize) -> LocationId {
        let next = self.rests.len() as u64;
        *self.rests.entry((location, removed)).or_insert_with(|| {
            let rest = recording.stacks.intern_location(Location { module: None, offset: RESTS - next });
            let frames: Vec<Frame> = recording.symbols.frames_of(location).skip(removed).cloned().collect();
            recording.symbols.set(rest, frames);
            rest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(func: &str, spec: &str) -> Frame {
        let spec = (!spec.is_empty()).then(|| spec.into());
        Frame { func: func.into(), spec, foreign: false, ..Frame::unknown(0) }
    }

    #[test]
    fn an_allocator_of_the_program_ends_with_the_innermost_call_of_it() {
        let method =
            frame("app::Counting::alloc", "<app::Counting as core::alloc::global::GlobalAlloc>::alloc");
        // With line tables alone, it is in the crate of the program.
        let made = frame("app::__rust_alloc", "");
        let zeroed = frame("core::alloc::global::GlobalAlloc::alloc_zeroed", "");
        let [grow, push, log, main] =
            ["app::Pool::grow", "alloc::vec::Vec::push", "app::log", "app::main"].map(|name| frame(name, ""));
        let mut recording = Recording::default();
        let mut add = |frames: &[&Frame]| -> LocationId {
            let offset = recording.stacks.locations().len() as u64;
            let location = recording.stacks.intern_location(Location { module: None, offset });
            recording.symbols.set(location, frames.iter().map(|frame| (*frame).clone()));
            location
        };
        let unnamed = add(&[]);
        let grow = add(&[&grow]);
        let method_alone = add(&[&method]);
        let inlined = add(&[&method, &made]);
        let by_default = add(&[&method, &zeroed, &made]);
        let into_caller = add(&[&made, &push, &main]);
        let (push, log, main) = (add(&[&push]), add(&[&log]), add(&[&main]));
        // The allocator, with code of its own below it.
        let plain = recording.stacks.intern(&[unnamed, grow, inlined, push, main]);
        // What it allocates for itself.
        let nested = recording.stacks.intern(&[inlined, push, log, method_alone, push, main]);
        let mixed = recording.stacks.intern(&[method_alone, into_caller]);
        let zeroed = recording.stacks.intern(&[by_default, push, main]);
        let without = recording.stacks.intern(&[unnamed, main]);
        let all = recording.stacks.intern(&[inlined]);
        let frames = AllocatorFrames::from_recording(&recording);
        for (stack, wanted) in [(plain, 4), (nested, 2), (mixed, 2), (zeroed, 3), (without, 0), (all, 0)] {
            assert_eq!(frames.depth(&recording, stack), wanted);
            assert_eq!(depth_of(&recording, stack), wanted);
        }
        let mut outside = Outside::from_recording(&recording);
        let mut names = |stack| -> Vec<String> {
            let stack = outside.stack(&mut recording, stack);
            let locations: Vec<LocationId> = recording.stacks.walk(stack).collect();
            let frames = locations.iter().flat_map(|location| recording.symbols.frames_of(*location));
            frames.map(|frame| frame.func.to_string()).collect()
        };
        assert_eq!(names(plain), ["alloc::vec::Vec::push", "app::main"]);
        assert_eq!(names(nested)[..2], ["alloc::vec::Vec::push", "app::log"]);
        assert_eq!(names(mixed), ["alloc::vec::Vec::push", "app::main"]);
        assert_eq!(names(without), ["app::main"]);
        assert_eq!(names(all), ["app::Counting::alloc", "app::__rust_alloc"]);
    }
}
