//! A part of the time of a recording.

use crate::{Nanos, Recording, RecordingInfo, Sample};

/// From one moment to another, relative to the start of a recording.
///
/// ```
/// use stackglass_profile::{Nanos, Recording, TimeRange};
/// let mut recording = Recording::default();
/// recording.info.wall = Nanos(4_000_000_000);
/// let range = TimeRange { from: Some(Nanos(1_000_000_000)), to: None };
/// recording.keep(range);
/// assert_eq!(recording.info.wall, Nanos(3_000_000_000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRange {
    /// `None`: from the start.
    pub from: Option<Nanos>,
    /// `None`: to the end.
    pub to: Option<Nanos>,
}

impl TimeRange {
    /// Whether it is the whole recording, however long that is.
    pub fn is_all(self) -> bool {
        self == TimeRange::default()
    }

    /// The same as moments of CLOCK_MONOTONIC.
    pub fn moments(self, info: &RecordingInfo) -> (Nanos, Nanos) {
        let moment = |relative: Nanos| Nanos(info.start.0.saturating_add(relative.0));
        (self.from.map_or(Nanos(0), moment), self.to.map_or(Nanos(u64::MAX), moment))
    }

    /// The part of a sample that lies in this range: see [`Sample::within`].
    pub fn part(self, sample: Sample, info: &RecordingInfo) -> Option<Sample> {
        if self.is_all() {
            return Some(sample);
        }
        let (from, to) = self.moments(info);
        sample.within(from, to)
    }
}

impl Recording {
    /// Keeps what lies in this range. See [`Sample::within`] for samples that lie in it in part.
    pub fn keep(&mut self, range: TimeRange) {
        let samples = std::mem::take(&mut self.samples);
        self.samples = samples.into_iter().filter_map(|sample| range.part(sample, &self.info)).collect();
        self.become_part(range);
    }

    /// Makes all but the samples that of this range: the figures of the whole recording do not hold for a part of it.
    pub fn become_part(&mut self, range: TimeRange) {
        if range.is_all() {
            return;
        }
        self.allocations.become_part(range, &self.info);
        let whole = Nanos(self.info.start.0.saturating_add(self.info.wall.0));
        let (from, to) = range.moments(&self.info);
        let begin = from.max(self.info.start);
        self.info.wall = Nanos(to.min(whole).0.saturating_sub(begin.0));
        self.info.start = begin;
        self.info.kernel_cpu = None;
        self.threads.iter_mut().for_each(|thread| thread.cpu = Nanos(0));
        for sample in self.samples.iter().filter(|sample| sample.state.uses_cpu()) {
            if let Some(thread) =
                (sample.thread.0 as usize).checked_sub(1).and_then(|at| self.threads.get_mut(at))
            {
                thread.cpu = Nanos(thread.cpu.0.saturating_add(sample.time.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessIndex, StackId, State, Thread, ThreadNumber};

    fn sample(clock: u64, time: u64, spread: u64) -> Sample {
        Sample {
            stack: StackId(1),
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(clock),
            state: State::Awake,
            cut: None,
            hits: 3,
            time: Nanos(time),
            spread: Nanos(spread),
        }
    }

    #[test]
    fn adjacent_ranges_add_up() {
        let mut seed = 11u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let time = random(3_000_000_000);
            let spread = if random(2) == 0 { 0 } else { random(5_000_000_000) };
            let clock = time + spread + random(1_000_000_000);
            let sample = sample(clock, time, spread);
            let mut cuts: Vec<u64> = (0..5).map(|_| random(clock + 2)).collect();
            cuts.extend([0, u64::MAX]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).filter_map(|cut| sample.within(Nanos(cut[0]), Nanos(cut[1])));
            let (time, hits) =
                parts.fold((0, 0), |(time, hits), part| (time + part.time.0, hits + part.hits));
            assert_eq!((time, hits), (sample.time.0, sample.hits), "{sample:?} {cuts:?}");
        }
    }

    #[test]
    fn a_part_of_a_recording_has_its_own_figures() {
        let mut recording = Recording::default();
        recording.info.start = Nanos(10_000);
        recording.info.wall = Nanos(4000);
        recording.info.kernel_cpu = Some(Nanos(4000));
        recording.threads.push(Thread {
            process: ProcessIndex(0),
            tid: 1,
            name: "t".into(),
            start: Nanos(10_000),
            end: None,
            cpu: Nanos(3000),
            blocked_signal: false,
        });
        recording.samples = vec![sample(11_000, 1000, 0), sample(12_000, 500, 500), sample(13_500, 500, 0)];
        recording.keep(TimeRange { from: Some(Nanos(500)), to: Some(Nanos(1500)) });
        let parts: Vec<_> =
            recording.samples.iter().map(|part| (part.clock.0, part.time.0, part.hits)).collect();
        assert_eq!(parts, [(11_000, 500, 3), (11_500, 250, 0)]);
        let info = &recording.info;
        assert_eq!((info.start, info.wall, info.kernel_cpu), (Nanos(10_500), Nanos(1000), None));
        assert_eq!(recording.threads[0].cpu, Nanos(750));
        let all = recording.clone();
        recording.keep(TimeRange::default());
        assert_eq!(recording.samples, all.samples);
    }
}
