//! The bytes that each source line allocated, for files with counts beside each line.

use crate::queries::allocations::allocator_frames::AllocatorFrames;
use foldhash::HashMap;
use stackglass_profile::{AllocationKind, ProcessIndex, Recording, StackId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Allocated bytes by source file, as recorded, and line. Lines that were seen in any stack but allocated nothing have 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocatedLines {
    /// The lines of each accepted file.
    pub files: BTreeMap<Arc<str>, BTreeMap<u64, u64>>,
    /// Bytes of stacks without a line in an accepted file.
    pub elsewhere: u64,
}

impl AllocatedLines {
    /// Charges the bytes of each allocation to the innermost frame, inlined or not, whose file is accepted, outside of an
    /// allocator that the program itself provides. Only allocations of blocks count, in processes for which `of_process` is true. `accepts` is called once for each file.
    pub fn from_recording(
        recording: &Recording,
        of_process: impl Fn(ProcessIndex) -> bool,
        mut accepts: impl FnMut(&str) -> bool,
    ) -> AllocatedLines {
        let mut lines = AllocatedLines::default();
        let mut accepted: HashMap<&Arc<str>, bool> = HashMap::default();
        // By frame index: its line, if its file is accepted.
        let mut places = Vec::with_capacity(recording.symbols.frames().len());
        for frame in recording.symbols.frames() {
            let line = u64::try_from(frame.line).ok().filter(|line| *line > 0 && !frame.file.is_empty());
            let line = line.filter(|_| *accepted.entry(&frame.file).or_insert_with(|| accepts(&frame.file)));
            if let Some(line) = line {
                lines.files.entry(frame.file.clone()).or_default().entry(line).or_default();
            }
            places.push(line.map(|line| (&frame.file, line)));
        }
        let allocators = AllocatorFrames::from_recording(recording);
        let place_of =
            |stack: StackId| allocators.outside(recording, stack).find_map(|frame| places[frame as usize]);
        let mut known = HashMap::default();
        for group in &recording.allocations.groups {
            if group.kind != AllocationKind::Block || !of_process(group.process) {
                continue;
            }
            let place = *known.entry(group.stack).or_insert_with(|| place_of(group.stack));
            let bytes = match place {
                Some((file, line)) => lines.files.get_mut(file).and_then(|lines| lines.get_mut(&line)),
                None => None,
            };
            let bytes = bytes.unwrap_or(&mut lines.elsewhere);
            *bytes = bytes.saturating_add(group.counts.bytes);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{
        AllocationCounts, AllocationGroup, Frame, Location, LocationId, SizeClass, ThreadNumber,
    };

    fn frame(file: &str, line: i64) -> Frame {
        Frame { file: file.into(), line, ..Frame::unknown(0) }
    }

    #[test]
    fn bytes_belong_to_the_innermost_accepted_line() {
        let mut recording = Recording::default();
        let mut add = |offset, frames: &[Frame]| -> LocationId {
            let location = recording.stacks.intern_location(Location { module: None, offset });
            recording.symbols.set(location, frames.iter().cloned());
            location
        };
        let main = add(1, &[frame("/a/main.rs", 3)]);
        // push, inlined into f, at one address.
        let push = add(2, &[frame("/std/vec.rs", 900), frame("/a/f.rs", 7), frame("/a/f.rs", 5)]);
        let libc = add(3, &[Frame::unknown(0)]);
        let std = add(4, &[frame("/std/rt.rs", 1)]);
        let mut allocate = |leaf_first: &[LocationId], bytes, process, kind| {
            let stack = recording.stacks.intern(leaf_first);
            let counts = AllocationCounts { count: 1, bytes, ..AllocationCounts::default() };
            let (thread, process) = (ThreadNumber(1), ProcessIndex(process));
            let (task, size_class) = (0, SizeClass::from_size(bytes));
            let group = AllocationGroup { stack, thread, process, task, kind, size_class, counts };
            recording.allocations.groups.push(group);
        };
        allocate(&[libc, push, main], 10, 0, AllocationKind::Block);
        allocate(&[libc, push, main], 5, 0, AllocationKind::Block);
        allocate(&[libc, main], 100, 0, AllocationKind::Block);
        allocate(&[libc, std], 1000, 0, AllocationKind::Block);
        allocate(&[], 10_000, 0, AllocationKind::Block);
        allocate(&[main], 100_000, 0, AllocationKind::Mapping);
        allocate(&[main], 1_000_000, 1, AllocationKind::Block);
        let mut asked = Vec::new();
        let lines = AllocatedLines::from_recording(
            &recording,
            |process| process == ProcessIndex(0),
            |file| {
                asked.push(file.to_owned());
                file.starts_with("/a/")
            },
        );
        asked.sort();
        assert_eq!(asked, ["/a/f.rs", "/a/main.rs", "/std/rt.rs", "/std/vec.rs"]);
        assert_eq!(lines.files.len(), 2);
        assert_eq!(lines.files["/a/f.rs"], [(5, 0), (7, 15)].into());
        assert_eq!(lines.files["/a/main.rs"], [(3, 100)].into());
        assert_eq!(lines.elsewhere, 11_000);
        let all = AllocatedLines::from_recording(&recording, |_| true, |_| true);
        assert_eq!(all.files["/std/vec.rs"], [(900, 15)].into());
        assert_eq!((all.files["/std/rt.rs"][&1], all.files["/a/main.rs"][&3]), (1000, 1_000_100));
        assert_eq!(all.elsewhere, 10_000);
    }
}
