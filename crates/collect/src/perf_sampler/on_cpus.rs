//! Which thread has which CPU, as far as the records say.
//!
//! A CPU has one thread at a time, and its records are in order. So a record that does not fit proves that others were lost,
//! even before the kernel reports the loss. What a thread did since the last record of its CPU is then in doubt, and must
//! not be counted as CPU time.

/// A thread whose state is not known since a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Doubt {
    pub tid: u32,
    /// Up to here, its state is certain.
    pub since: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Cpu {
    /// The thread that has it, if that is one of the recorded program's.
    thread: Option<u32>,
    /// The moment of the last record.
    last: u64,
}

/// All CPUs.
#[derive(Default, Debug)]
pub(super) struct OnCpus {
    cpus: Vec<Cpu>,
}

impl OnCpus {
    fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        &mut self.cpus[cpu]
    }

    /// Number of CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The thread that has a CPU.
    pub(super) fn thread_on(&self, cpu: usize) -> Option<u32> {
        self.cpus.get(cpu)?.thread
    }

    /// A record of a CPU was read.
    pub(super) fn saw(&mut self, cpu: usize, at: u64) {
        let cpu = self.cpu(cpu);
        cpu.last = cpu.last.max(at);
    }

    /// A thread gets a CPU; `None` for a thread of another program. Returns the threads that must have left theirs before.
    pub(super) fn switched_in(&mut self, cpu: usize, tid: Option<u32>, at: u64) -> [Option<Doubt>; 2] {
        let elsewhere = tid.and_then(|tid| {
            let mut others = self.cpus.iter_mut().enumerate().filter(|(other, _)| *other != cpu);
            let (_, other) = others.find(|(_, other)| other.thread == Some(tid))?;
            other.thread = None;
            Some(Doubt { tid, since: other.last })
        });
        let here = self.cpu(cpu);
        let displaced = here.thread.filter(|before| Some(*before) != tid);
        let displaced = displaced.map(|tid| Doubt { tid, since: here.last });
        here.thread = tid;
        here.last = here.last.max(at);
        [displaced, elsewhere]
    }

    /// A thread leaves a CPU; `None` for a thread of another program, or one that has ended. Returns the thread that has left, if
    /// the records before fit, and one whose state is in doubt.
    pub(super) fn switched_out(
        &mut self,
        cpu: usize,
        tid: Option<u32>,
        at: u64,
    ) -> (Option<u32>, Option<Doubt>) {
        let here = self.cpu(cpu);
        let before = here.thread.take();
        let since = here.last;
        here.last = here.last.max(at);
        match (before, tid) {
            (Some(before), Some(tid)) if before != tid => (None, Some(Doubt { tid: before, since })),
            _ => (before, None),
        }
    }

    /// Records of a CPU were lost.
    pub(super) fn lost(&mut self, cpu: usize, at: u64) -> Option<Doubt> {
        let here = self.cpu(cpu);
        let doubt = here.thread.take().map(|tid| Doubt { tid, since: here.last });
        here.last = here.last.max(at);
        doubt
    }

    /// A thread that has ended leaves its CPU.
    pub(super) fn forget(&mut self, tid: u32) {
        self.cpus.iter_mut().filter(|cpu| cpu.thread == Some(tid)).for_each(|cpu| cpu.thread = None);
    }

    /// A thread has ended, and no record says so. If it had a CPU, other than the one where this is known from, that is in doubt.
    pub(super) fn ended_unseen(&mut self, tid: u32, known_from: Option<usize>) -> Option<Doubt> {
        let cpu = self.cpu_of(tid).filter(|cpu| Some(*cpu) != known_from)?;
        let cpu = &mut self.cpus[cpu];
        cpu.thread = None;
        Some(Doubt { tid, since: cpu.last })
    }

    /// The CPU that a thread has.
    pub(super) fn cpu_of(&self, tid: u32) -> Option<usize> {
        self.cpus.iter().position(|cpu| cpu.thread == Some(tid))
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::{Phase, SwitchCost, ThreadTime};
    use super::*;
    use stackglass_sampling::Random;

    #[derive(Clone, Copy, Debug)]
    enum Record {
        In(u32),
        Out(u32, Phase),
        Lost,
    }

    /// The records of threads that take turns on two CPUs for a while, each with its CPU and moment, and what each thread has run.
    fn schedule(threads: usize, steps: usize, random: &mut Random) -> (Vec<(usize, u64, Record)>, Vec<u64>) {
        let (mut ran, mut records) = (vec![0; threads], Vec::new());
        let (mut on, mut now): ([Option<(usize, u64)>; 2], u64) = ([None; 2], 0);
        for _ in 0..steps {
            now += 1 + random.below(1_000_000);
            let cpu = random.below(2) as usize;
            if let Some((thread, since)) = on[cpu].take() {
                ran[thread] += now - since;
                let phase = if random.below(2) == 0 { Phase::Asleep } else { Phase::Ready };
                records.push((cpu, now, Record::Out(thread as u32 + 1, phase)));
            }
            now += 1;
            let next = random.below(threads as u64) as usize;
            if on.iter().flatten().all(|(thread, _)| *thread != next) {
                on[cpu] = Some((next, now));
                records.push((cpu, now, Record::In(next as u32 + 1)));
            }
        }
        for (cpu, on) in on.into_iter().enumerate() {
            if let Some((thread, since)) = on {
                ran[thread] += now - since;
                records.push((cpu, now, Record::Out(thread as u32 + 1, Phase::Asleep)));
            }
        }
        (records, ran)
    }

    /// Takes records away, `part` of them, in groups. The next record of that CPU reports the loss.
    fn lose(records: &[(usize, u64, Record)], part: f64, random: &mut Random) -> Vec<(usize, u64, Record)> {
        let (mut kept, mut left) = (Vec::new(), [0u64; 2]);
        for (cpu, at, record) in records {
            if left[*cpu] == 0 && random.between((0.0, 1.0)) < part / 8.0 {
                left[*cpu] = 1 + random.below(15);
            }
            match &mut left[*cpu] {
                0 => kept.push((*cpu, *at, *record)),
                left => {
                    *left -= 1;
                    if *left == 0 {
                        kept.push((*cpu, *at, Record::Lost));
                    }
                }
            }
        }
        kept
    }

    /// The CPU time that is counted from these records.
    fn count(records: &[(usize, u64, Record)], threads: usize) -> Vec<u64> {
        let (mut on, cost) = (OnCpus::default(), SwitchCost::default());
        let mut times = vec![ThreadTime::new(0, Phase::Asleep); threads];
        for (cpu, at, record) in records {
            let mut doubts = [None; 3];
            match record {
                Record::In(tid) => {
                    [doubts[0], doubts[1]] = on.switched_in(*cpu, Some(*tid), *at);
                    doubts
                        .iter()
                        .flatten()
                        .for_each(|doubt| times[doubt.tid as usize - 1].doubt(doubt.since));
                    times[*tid as usize - 1].enter(Phase::Running, *at);
                }
                Record::Out(tid, phase) => {
                    let (left, doubt) = on.switched_out(*cpu, Some(*tid), *at);
                    doubt.iter().for_each(|doubt| times[doubt.tid as usize - 1].doubt(doubt.since));
                    let time = &mut times[*tid as usize - 1];
                    if left.is_none() {
                        time.doubt(0);
                    }
                    time.enter(*phase, *at);
                }
                Record::Lost => {
                    on.lost(*cpu, *at)
                        .iter()
                        .for_each(|doubt| times[doubt.tid as usize - 1].doubt(doubt.since));
                }
            }
            // A reading in between changes nothing for later.
            times.iter_mut().for_each(|time| time.advance(*at));
        }
        times.iter().map(|time| time.clock(&cost)).collect()
    }

    #[test]
    fn without_losses_every_nanosecond_is_counted() {
        let mut random = Random::new(1);
        let (records, ran) = schedule(5, 20_000, &mut random);
        assert_eq!(count(&records, 5), ran);
    }

    #[test]
    fn losses_never_add_time() {
        let (mut random, mut with_losses) = (Random::new(2), 0);
        for part in [0.01, 0.1, 0.5, 0.9] {
            for _ in 0..20 {
                let (records, ran) = schedule(7, 2000, &mut random);
                let kept = lose(&records, part, &mut random);
                with_losses += u32::from(kept.iter().any(|(.., record)| matches!(record, Record::Lost)));
                let counted = count(&kept, 7);
                assert!(
                    counted.iter().zip(&ran).all(|(counted, ran)| counted <= ran),
                    "{counted:?} of {ran:?}"
                );
                let (counted, ran): (u64, u64) = (counted.iter().sum(), ran.iter().sum());
                // What is not lost is counted.
                assert!(part > 0.01 || counted as f64 > 0.7 * ran as f64, "{counted} of {ran}");
            }
        }
        // By chance, a small part is nothing in one of a hundred.
        assert!(with_losses > 70, "{with_losses} of 80");
    }

    #[test]
    fn a_record_that_does_not_fit_is_noticed_at_once() {
        let mut on = OnCpus::default();
        assert_eq!(on.switched_in(0, Some(1), 10), [None, None]);
        on.saw(0, 15);
        // Its switch away from CPU 0 was lost.
        assert_eq!(on.switched_in(1, Some(1), 20), [None, Some(Doubt { tid: 1, since: 15 })]);
        assert_eq!((on.thread_on(0), on.thread_on(1), on.cpu_of(1)), (None, Some(1), Some(1)));
        // Another program's thread gets its CPU.
        assert_eq!(on.switched_in(1, None, 30), [Some(Doubt { tid: 1, since: 20 }), None]);
        assert_eq!(on.switched_out(1, Some(2), 40), (None, None));
        // A thread that has ended has no id when it leaves its CPU.
        on.switched_in(1, Some(3), 50);
        assert_eq!(on.switched_out(1, None, 60), (Some(3), None));
        on.switched_in(1, Some(3), 70);
        assert_eq!(on.switched_out(1, Some(4), 80), (None, Some(Doubt { tid: 3, since: 70 })));
        on.switched_in(1, Some(6), 85);
        assert_eq!((on.ended_unseen(6, Some(1)), on.thread_on(1)), (None, Some(6)));
        assert_eq!(on.ended_unseen(6, Some(0)), Some(Doubt { tid: 6, since: 85 }));
        assert_eq!((on.ended_unseen(6, None), on.thread_on(1)), (None, None));
        on.switched_in(0, Some(5), 90);
        assert_eq!(on.lost(0, 95), Some(Doubt { tid: 5, since: 90 }));
        assert_eq!(on.lost(7, 95), None);
    }
}
