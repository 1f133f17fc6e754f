//! Merges recordings: several profiled regions of one process become one profile.

use crate::{
    AllocatingProcess, AllocationKind, AllocationSampling, Allocations, LocationId, ModuleIndex,
    ProcessIndex, Recording, StackId, TASKS_MODULE, Task, TaskId, ThreadNumber,
};
use foldhash::HashMap;

impl Recording {
    /// Adds everything from `other`, which was recorded later.
    ///
    /// Processes with the same pid and executable are the same, and so are their threads with the same kernel id. A thread
    /// keeps its number and gets the later end. Wall times add up. The names of `other` are dropped: symbolize afterwards.
    ///
    /// Counts of allocations add up, except that the peak of a process is the higher one of the two recordings.
    pub fn absorb(&mut self, other: &Recording) {
        let processes: Vec<ProcessIndex> =
            other.processes.iter().map(|process| self.absorb_process(process)).collect();
        let threads = self.absorb_threads(other, &processes);
        self.absorb_tasks(other, &processes);
        let modules: Vec<ModuleIndex> =
            other.modules.iter().map(|module| self.intern_module(module.clone())).collect();
        let locations: Vec<LocationId> = other
            .stacks
            .locations()
            .iter()
            .map(|location| {
                let mut location = *location;
                location.module = location.module.map(|module| modules[module.0 as usize]);
                let module = location.module.and_then(|module| self.modules.get(module.0 as usize));
                if location.offset != 0 && module.is_some_and(|module| &*module.path == TASKS_MODULE) {
                    let task = TaskId(location.offset);
                    let process = processes.get(task.process().0 as usize).copied().unwrap_or_default();
                    location.offset = TaskId::in_process(process, task.0).0;
                }
                self.stacks.intern_location(location)
            })
            .collect();
        // Callers have smaller ids than callees, so one pass suffices.
        let mut stacks = vec![StackId(0)];
        for (caller, location) in other.stacks.nodes() {
            let here = self.stacks.extend(stacks[caller.0 as usize], locations[location.0 as usize]);
            stacks.push(here);
        }
        for sample in &other.samples {
            let mut sample = *sample;
            sample.stack = stacks[sample.stack.0 as usize];
            sample.thread = threads[sample.thread.0 as usize - 1];
            if sample.task != 0 {
                let process = self.threads[sample.thread.0 as usize - 1].process;
                sample.task = TaskId::in_process(process, sample.task).0;
            }
            self.push(sample);
        }
        self.absorb_allocations(&other.allocations, &processes, &threads, &stacks);
        self.info.wall.0 = self.info.wall.0.saturating_add(other.info.wall.0);
        self.info.own_cpu.0 = self.info.own_cpu.0.saturating_add(other.info.own_cpu.0);
        self.info.full |= other.info.full;
        for remark in &other.info.remarks {
            if !self.info.remarks.contains(remark) {
                self.info.remarks.push(remark.clone());
            }
        }
    }

    fn absorb_process(&mut self, process: &crate::Process) -> ProcessIndex {
        let known = self.processes.iter().position(|p| p.pid == process.pid && p.exe == process.exe);
        let Some(index) = known else {
            self.processes.push(process.clone());
            return ProcessIndex(self.processes.len() as u32 - 1);
        };
        let here = &mut self.processes[index];
        here.end = process.end;
        for (label, count) in &process.counters {
            *here.counters.entry(label.clone()).or_default() += count;
        }
        ProcessIndex(index as u32)
    }

    fn absorb_allocations(
        &mut self,
        other: &Allocations,
        processes: &[ProcessIndex],
        threads: &[ThreadNumber],
        stacks: &[StackId],
    ) {
        let here = &mut self.allocations;
        // They do not have what the other recording counted.
        here.slices.forget();
        let (peaks_before, peaks_later) = (peaks(here), peaks(other));
        let first_new = here.groups.len();
        here.groups.extend(other.groups.iter().map(|group| {
            let mut group = *group;
            group.process = processes[group.process.0 as usize];
            group.stack = stacks[group.stack.0 as usize];
            if group.thread.0 != 0 {
                group.thread = threads[group.thread.0 as usize - 1];
            }
            if group.task != 0 {
                group.task = TaskId::in_process(group.process, group.task).0;
            }
            group
        }));
        for later in &other.processes {
            let process = processes[later.process.0 as usize];
            let Some(known) = here.processes.iter_mut().find(|known| known.process == process) else {
                here.processes.push(AllocatingProcess { process, ..later.clone() });
                continue;
            };
            known.begin = known.begin.min(later.begin);
            known.end = known.end.max(later.end);
            known.lost = known.lost.saturating_add(later.lost);
            known.without_stack = known.without_stack.saturating_add(later.without_stack);
            known.memory.extend_from_slice(&later.memory);
            // If only one of them has every allocation, the sums have not.
            if known.sampling == AllocationSampling::Every {
                known.sampling = later.sampling;
            }
            let higher = peaks_later.get(&later.process) > peaks_before.get(&process);
            let without = if higher { 0..first_new } else { first_new..here.groups.len() };
            if higher {
                known.peak_at = later.peak_at;
            }
            for group in here.groups[without].iter_mut().filter(|group| group.process == process) {
                (group.counts.peak_count, group.counts.peak_bytes) = (0, 0);
            }
        }
    }

    fn absorb_tasks(&mut self, other: &Recording, processes: &[ProcessIndex]) {
        let known = self.tasks.iter().enumerate().map(|(index, task)| (task.id, index));
        let mut known: HashMap<TaskId, usize> = known.collect();
        for task in &other.tasks {
            let process = processes[task.process.0 as usize];
            let id = TaskId::in_process(process, task.id.0);
            let index = *known.entry(id).or_insert_with(|| {
                self.tasks.push(Task { id, process, ..task.clone() });
                self.tasks.len() - 1
            });
            let here = &mut self.tasks[index];
            here.waited = here.waited.max(task.waited);
        }
    }

    fn absorb_threads(&mut self, other: &Recording, processes: &[ProcessIndex]) -> Vec<ThreadNumber> {
        let mut known: HashMap<(ProcessIndex, u32), ThreadNumber> = HashMap::default();
        for (index, thread) in self.threads.iter().enumerate() {
            known.insert((thread.process, thread.tid), ThreadNumber(index as u32 + 1));
        }
        let mut numbers = Vec::with_capacity(other.threads.len());
        for thread in &other.threads {
            let process = processes[thread.process.0 as usize];
            let number = *known.entry((process, thread.tid)).or_insert_with(|| {
                let mut new = thread.clone();
                (new.process, new.cpu.0) = (process, 0);
                self.threads.push(new);
                ThreadNumber(self.threads.len() as u32)
            });
            let here = &mut self.threads[number.0 as usize - 1];
            here.name = thread.name.clone();
            here.end = thread.end;
            here.cpu.0 = here.cpu.0.saturating_add(thread.cpu.0);
            here.blocked_signal |= thread.blocked_signal;
            numbers.push(number);
        }
        numbers
    }
}

/// The bytes of blocks at the peak of each process.
fn peaks(allocations: &Allocations) -> HashMap<ProcessIndex, u64> {
    let mut peaks = HashMap::default();
    for group in allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block) {
        let peak: &mut u64 = peaks.entry(group.process).or_default();
        *peak = peak.saturating_add(group.counts.peak_bytes);
    }
    peaks
}

#[cfg(test)]
mod tests {
    use crate::*;

    fn region(offsets: &[u64], tid: u32) -> Recording {
        let mut recording = Recording::default();
        recording.info.wall = Nanos(10);
        recording.processes.push(Process { pid: 7, ..Process::default() });
        recording.threads.push(Thread {
            process: ProcessIndex(0),
            tid,
            name: "t".into(),
            start: Nanos(1),
            end: None,
            cpu: Nanos(5),
            blocked_signal: false,
        });
        let module = Some(recording.intern_module(Module { path: "/bin/a".into(), build_id: [].into() }));
        let ids: Vec<_> = offsets
            .iter()
            .map(|offset| recording.stacks.intern_location(Location { module, offset: *offset }))
            .collect();
        let stack = recording.stacks.intern(&ids);
        recording.push(Sample {
            stack,
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(2),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(5),
            spread: Nanos(0),
        });
        recording
    }

    #[test]
    fn regions_of_one_process_add_up() {
        let mut all = Recording::default();
        all.absorb(&region(&[1, 2, 3], 70));
        all.absorb(&region(&[9, 2, 3], 70));
        all.absorb(&region(&[1, 2, 3], 71));
        assert_eq!((all.processes.len(), all.threads.len(), all.modules.len()), (1, 2, 1));
        assert_eq!((all.threads[0].cpu, all.info.wall), (Nanos(10), Nanos(30)));
        assert_eq!(all.stacks.nodes().len(), 4, "the callers are shared");
        let offsets: Vec<Vec<u64>> = all
            .samples
            .iter()
            .map(|s| all.stacks.walk(s.stack).map(|l| all.stacks.location(l).offset).collect())
            .collect();
        assert_eq!(offsets, [[1, 2, 3], [9, 2, 3], [1, 2, 3]]);
        assert_eq!(all.samples[2].thread, ThreadNumber(2));
    }
    #[test]
    fn allocations_add_up_and_the_higher_peak_stays() {
        let part = |offset, tid, peak_bytes, sampling| {
            let mut part = region(&[offset, 2], tid);
            part.allocations.processes.push(AllocatingProcess {
                process: ProcessIndex(0),
                begin: Nanos(offset),
                end: Nanos(offset + 1),
                sampling,
                peak_at: Nanos(peak_bytes),
                lost: 1,
                without_stack: 2,
                memory: vec![MemoryPoint { clock: Nanos(offset), live_bytes: 5, resident_bytes: 6 }],
            });
            let (stack, thread, task) = (part.samples[0].stack, ThreadNumber(1), 0);
            let counts = AllocationCounts { count: 2, bytes: 50, peak_bytes, ..AllocationCounts::default() };
            let (process, kind, size_class) =
                (ProcessIndex(0), AllocationKind::Block, SizeClass::from_size(25));
            let group = AllocationGroup { stack, thread, process, task, kind, size_class, counts };
            let unknown = AllocationGroup { stack: StackId(0), thread: ThreadNumber(0), ..group };
            part.allocations.groups.extend([group, unknown]);
            part
        };
        let mut all = Recording::default();
        all.absorb(&part(1, 70, 40, AllocationSampling::Every));
        all.absorb(&part(5, 71, 50, AllocationSampling::Rate(0.5)));
        all.absorb(&part(9, 71, 30, AllocationSampling::Every));
        let Allocations { processes, groups, .. } = &all.allocations;
        assert_eq!((processes.len(), groups.len()), (1, 6));
        let process = &processes[0];
        assert_eq!((process.begin, process.end, process.peak_at), (Nanos(1), Nanos(10), Nanos(50)));
        assert_eq!((process.lost, process.without_stack, process.memory.len()), (3, 6, 3));
        assert_eq!(process.sampling, AllocationSampling::Rate(0.5));
        let total = all.allocations.total(AllocationKind::Block);
        assert_eq!((total.count, total.bytes, total.peak_bytes), (12, 300, 100));
        let threads: Vec<u32> = groups.iter().map(|group| group.thread.0).collect();
        assert_eq!(threads, [1, 0, 2, 0, 2, 0]);
        assert_eq!(groups[4].stack, all.samples[2].stack);
        assert_eq!(groups[5].stack, StackId(0));
    }
}
