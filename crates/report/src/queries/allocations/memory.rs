//! Live and resident bytes of all processes over time.

use stackglass_profile::{AllocatingProcess, Allocations, MemoryPoint, Nanos};

/// Live and resident bytes in equal intervals of the recording: the maximum of each interval.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Memory {
    /// Live bytes by interval.
    pub live: Vec<u64>,
    /// Resident bytes by interval; all 0 if unknown.
    pub resident: Vec<u64>,
    /// The time that all intervals cover.
    pub time: Nanos,
}

impl Memory {
    /// Divides the recording into this many intervals. Empty if memory was not measured over time.
    pub(crate) fn from_allocations(allocations: &Allocations, intervals: usize) -> Memory {
        let measured: Vec<&AllocatingProcess> =
            allocations.processes.iter().filter(|process| !process.memory.is_empty()).collect();
        let clocks = || measured.iter().flat_map(|process| process.memory.iter().map(|point| point.clock));
        let ends = measured.iter().map(|process| process.end);
        let (Some(begin), Some(end)) = (clocks().min(), clocks().chain(ends).max()) else {
            return Memory::default();
        };
        let time = end.0.saturating_sub(begin.0);
        let mut memory = Memory { live: vec![0; intervals], resident: vec![0; intervals], time: Nanos(time) };
        // The interval of a moment. The last one includes the end.
        let interval = |clock: Nanos| {
            let part = u128::from(clock.0.saturating_sub(begin.0)) * intervals as u128;
            ((part / u128::from(time.max(1))) as usize).min(intervals.saturating_sub(1))
        };
        for process in measured {
            let last = interval(process.end);
            let mut before: Option<(usize, MemoryPoint)> = None;
            let mut live = vec![0_u64; intervals];
            let mut resident = vec![0_u64; intervals];
            let mut raise = |at: usize, point: &MemoryPoint| {
                live[at] = live[at].max(point.live_bytes);
                resident[at] = resident[at].max(point.resident_bytes);
            };
            for point in &process.memory {
                let at = interval(point.clock);
                // Between two points memory is as at the first one.
                if let Some((from, point)) = before {
                    (from..=at).for_each(|at| raise(at, &point));
                }
                raise(at, point);
                before = Some((at, *point));
            }
            if let Some((from, point)) = before {
                (from..last).for_each(|at| raise(at, &point));
            }
            for at in 0..intervals {
                memory.live[at] = memory.live[at].saturating_add(live[at]);
                memory.resident[at] = memory.resident[at].saturating_add(resident[at]);
            }
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{AllocationSampling, ProcessIndex};

    fn process(end: u64, points: &[(u64, u64)]) -> AllocatingProcess {
        let point = |(clock, live): &(u64, u64)| MemoryPoint {
            clock: Nanos(*clock),
            live_bytes: *live,
            resident_bytes: live.saturating_mul(2),
        };
        AllocatingProcess {
            process: ProcessIndex(0),
            begin: Nanos(0),
            end: Nanos(end),
            sampling: AllocationSampling::Every,
            peak_at: Nanos(0),
            lost: 0,
            without_stack: 0,
            memory: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn processes_are_summed_while_they_live() {
        let processes =
            vec![process(100, &[(0, 10), (12, 50), (15, 20), (99, 1)]), process(60, &[(30, 100), (55, 200)])];
        let memory = Memory::from_allocations(&Allocations { processes, ..Allocations::default() }, 10);
        assert_eq!(memory.live, [10, 50, 20, 120, 120, 220, 20, 20, 20, 20]);
        assert_eq!(memory.resident, memory.live.iter().map(|live| 2 * live).collect::<Vec<_>>());
        assert_eq!(memory.time, Nanos(100));
    }

    #[test]
    fn no_points_no_line() {
        let processes = vec![process(100, &[])];
        assert_eq!(
            Memory::from_allocations(&Allocations { processes, ..Allocations::default() }, 10),
            Memory::default()
        );
        let processes = vec![process(7, &[(7, u64::MAX)]), process(7, &[(7, u64::MAX)])];
        let memory = Memory::from_allocations(&Allocations { processes, ..Allocations::default() }, 1);
        assert_eq!(memory.live, [u64::MAX]);
    }
}
