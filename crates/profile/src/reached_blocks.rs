//! Which blocks that are alive at the end something still holds, as a heap snapshot of that moment tells.
//!
//! Only memory is evidence: names on the stack of an allocation do not tell whether a static, a thread or nothing holds the block.

use crate::frame::file_name;
use crate::{AllocationKind, AllocationSampling, ProcessIndex, Recording, SizeClass, StackId};
use std::collections::HashMap;
use std::sync::Arc;

/// A stack by modules and offsets in them, the innermost first: the same in any recording. A module is its build id, or its file
/// name if it has none: the loader and the kernel may name the same file by different paths.
pub type PortableStack = Vec<(Arc<[u8]>, u64)>;

/// Live blocks of one stack and size class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReachedBlocks {
    /// Where they were allocated.
    pub stack: PortableStack,
    /// Their sizes.
    pub size_class: SizeClass,
    /// All of them.
    pub count: u64,
    /// Those that a root reaches: a static, a thread or its stack.
    pub reached_count: u64,
}

impl Recording {
    /// A stack as it can be found in another recording.
    pub fn portable_stack(&self, stack: StackId) -> PortableStack {
        let part = |location| {
            let location = self.stacks.location(location);
            let module = location.module.and_then(|module| self.modules.get(module.0 as usize));
            let identity: Arc<[u8]> = match module {
                Some(module) if !module.build_id.is_empty() => module.build_id.clone(),
                Some(module) => file_name(&module.path).as_bytes().into(),
                None => Arc::from(&b""[..]),
            };
            (identity, location.offset)
        };
        self.stacks.walk(stack).map(part).collect()
    }

    /// Sets how many of the live blocks of a process count as held: all but those that nothing held at the snapshot. Threads may run on
    /// after it, so a block that it does not have was allocated later, and nothing tells that it is lost.
    ///
    /// ```
    /// use stackglass_profile::{ProcessIndex, Recording};
    ///
    /// let mut recording = Recording::default();
    /// recording.set_reached(ProcessIndex(0), &[]);
    /// assert!(recording.allocations.groups.is_empty());
    /// ```
    pub fn set_reached(&mut self, process: ProcessIndex, blocks: &[ReachedBlocks]) {
        let mut known: HashMap<&PortableStack, HashMap<SizeClass, Share>> = HashMap::new();
        for part in blocks {
            let share = known.entry(&part.stack).or_default().entry(part.size_class).or_default();
            share.count = share.count.saturating_add(part.count);
            let unreached = part.count.saturating_sub(part.reached_count);
            share.unreached = share.unreached.saturating_add(unreached);
        }
        let of_process = self.allocations.processes.iter().find(|known| known.process == process);
        let is_sampled = of_process.is_some_and(|known| {
            matches!(known.sampling, AllocationSampling::ScaledRate(_) | AllocationSampling::Bytes(_))
        });
        let mut stacks: HashMap<StackId, PortableStack> = HashMap::new();
        for number in 0..self.allocations.groups.len() {
            let group = &self.allocations.groups[number];
            let live = group.counts.live_count();
            if group.process != process || group.kind != AllocationKind::Block || live == 0 {
                continue;
            }
            let (stack, size_class) = (group.stack, group.size_class);
            let portable = stacks.entry(stack).or_insert_with(|| self.portable_stack(stack));
            let share = known.get_mut(portable).and_then(|classes| classes.get_mut(&size_class));
            let count = share.map_or(live, |share| share.next(live, is_sampled));
            let counts = &mut self.allocations.groups[number].counts;
            // Blocks of one class have nearly one size.
            let bytes = u128::from(counts.live_bytes()) * u128::from(count) / u128::from(live);
            (counts.kept_count, counts.kept_bytes) = (count, bytes as u64);
        }
    }
}

/// How many of the blocks of one stack and size class nothing holds, given out to groups one after the other.
#[derive(Default)]
struct Share {
    count: u64,
    unreached: u64,
    /// Blocks of the groups before, and how many of them count as unreached.
    live: u64,
    given: u64,
}

impl Share {
    /// How many of the `live` blocks of the next group are held. If each group stands for more blocks than were seen (`is_sampled`), the
    /// unreached ones have the same share of them; else there are no more of them than were seen.
    fn next(&mut self, live: u64, is_sampled: bool) -> u64 {
        self.live = self.live.saturating_add(live);
        let until = u128::from(self.live) * u128::from(self.unreached) / u128::from(self.count.max(1));
        let mut until = u64::try_from(until).unwrap_or(u64::MAX);
        if !is_sampled {
            until = until.min(self.unreached);
        }
        let unreached = until.saturating_sub(self.given).min(live);
        self.given += unreached;
        live - unreached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllocatingProcess, AllocationCounts, AllocationGroup, Location, Nanos, ThreadNumber};

    fn recording(live: &[(u64, ProcessIndex, u64)]) -> Recording {
        let mut recording = Recording::default();
        for (offset, process, count) in live {
            let location = recording.stacks.intern_location(Location { module: None, offset: *offset });
            let stack = recording.stacks.intern(&[location]);
            recording.allocations.groups.push(AllocationGroup {
                stack,
                thread: ThreadNumber(1),
                process: *process,
                task: 0,
                kind: AllocationKind::Block,
                size_class: SizeClass::from_size(32),
                counts: AllocationCounts {
                    count: count + 1,
                    bytes: (count + 1) * 32,
                    freed_count: 1,
                    freed_bytes: 32,
                    ..Default::default()
                },
            });
        }
        recording
    }

    #[test]
    fn what_is_reached_is_no_leak() {
        let (program, child) = (ProcessIndex(0), ProcessIndex(1));
        // Two threads allocate at one stack; another process does as well.
        let mut recording =
            recording(&[(1, program, 3), (1, program, 7), (1, child, 5), (2, program, 4), (3, program, 2)]);
        let part = |offset, count, reached_count| ReachedBlocks {
            stack: vec![(b"".as_slice().into(), offset)],
            size_class: SizeClass::from_size(32),
            count,
            reached_count,
        };
        recording.set_reached(program, &[part(1, 10, 4), part(2, 4, 4)]);
        let leaked = |recording: &Recording| -> Vec<(u64, u64)> {
            let groups = recording.allocations.groups.iter();
            groups.map(|group| (group.counts.leaked_count(), group.counts.leaked_bytes())).collect()
        };
        let found = leaked(&recording);
        assert_eq!(found[0].0 + found[1].0, 6, "{found:?}");
        assert_eq!(found[2..], [(5, 160), (0, 0), (0, 0)], "the last two were allocated after the snapshot");
        // More were allocated after the snapshot.
        recording.set_reached(program, &[part(1, 1, 0), part(2, 8, 6)]);
        let found = leaked(&recording);
        assert_eq!((found[0].0 + found[1].0, found[3].0), (1, 1));
        // One in ten blocks was seen: the same share.
        recording.allocations.processes.push(AllocatingProcess {
            process: program,
            begin: Nanos(0),
            end: Nanos(1),
            sampling: AllocationSampling::ScaledRate(0.1),
            peak_at: Nanos(0),
            lost: 0,
            without_stack: 0,
            memory: Vec::new(),
        });
        recording.set_reached(program, &[part(1, 1, 0), part(2, 2, 1)]);
        let found = leaked(&recording);
        assert_eq!((found[0].0 + found[1].0, found[3].0), (10, 2));
    }
}
