//! Merges recordings: several profiled regions of one process become one profile.

use crate::{
    LocationId, ModuleIndex, ProcessIndex, Recording, StackId, TASKS_MODULE, Task, TaskId, ThreadNumber,
};
use foldhash::HashMap;

impl Recording {
    /// Adds everything from `other`, which was recorded later.
    ///
    /// Processes with the same pid and executable are the same, and so are their threads with the same kernel id. A thread
    /// keeps its number and gets the later end. Wall times add up. The names of `other` are dropped: symbolize afterwards.
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
}
