//! Sums over the recording of a program, for assertions.

use stackglass_profile::{Cut, Recording, State, ThreadNumber};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Sums over all processes of one executable.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Process images.
    pub processes: usize,
    /// Of these, forked children before any exec.
    pub forked: usize,
    /// Threads.
    pub threads: usize,
    /// Stacks of running threads.
    pub hits: u64,
    /// Of these, stacks that reach their root.
    pub whole: u64,
    /// Time awake, ns.
    pub awake: u64,
    /// Time asleep, ns.
    pub asleep: u64,
    /// Of this, time without a stack: the first and last moments of threads, and stacks that were lost on a busy machine, ns.
    pub without_stack: u64,
    /// The longest time that one stack stands for, ns: a busy machine samples late.
    pub longest: u64,
    /// Awake time with each function in the stack, by the last segment of its path, ns.
    pub functions: BTreeMap<String, u64>,
    /// The same for time asleep.
    pub sleeping_functions: BTreeMap<String, u64>,
    /// Deepest stack.
    pub deepest: usize,
    /// Threads that blocked the signal.
    pub blocked: usize,
}

impl Seen {
    /// Sums over the executable with this file name.
    pub fn from_recording(recording: &Recording, program: &str) -> Seen {
        let mut seen = Seen::default();
        let ours: Vec<bool> = recording
            .processes
            .iter()
            .map(|process| process.exe.rsplit('/').next() == Some(program))
            .collect();
        seen.processes = ours.iter().filter(|ours| **ours).count();
        seen.forked =
            recording.processes.iter().zip(&ours).filter(|(process, ours)| **ours && process.forked).count();
        let is_ours = |thread: ThreadNumber| {
            let thread = recording.thread(thread);
            thread.is_some_and(|thread| ours.get(thread.process.0 as usize) == Some(&true))
        };
        for thread in
            recording.threads.iter().filter(|thread| ours.get(thread.process.0 as usize) == Some(&true))
        {
            seen.threads += 1;
            seen.blocked += usize::from(thread.blocked_signal);
        }
        for sample in recording.samples.iter().filter(|sample| is_ours(sample.thread)) {
            let mut names: Vec<Arc<str>> = Vec::new();
            let mut depth = 0;
            for location in recording.stacks.walk(sample.stack) {
                depth += 1;
                names.extend(recording.symbols.frames_of(location).map(|frame| frame.func.clone()));
            }
            names.sort();
            names.dedup();
            seen.deepest = seen.deepest.max(depth);
            let functions = match sample.state {
                State::Asleep | State::Waiting => {
                    seen.asleep += sample.time.0;
                    &mut seen.sleeping_functions
                }
                _ => {
                    seen.awake += sample.time.0;
                    seen.without_stack += if depth == 0 { sample.time.0 } else { 0 };
                    seen.longest = seen.longest.max(sample.time.0 / u64::from(sample.hits.max(1)));
                    seen.hits += u64::from(sample.hits);
                    // While the kernel starts or ends a program, there is no stack that could be whole.
                    let is_whole = sample.cut.is_none_or(|cut| cut == Cut::BETWEEN_PROGRAMS);
                    seen.whole += if is_whole { u64::from(sample.hits) } else { 0 };
                    &mut seen.functions
                }
            };
            for name in names {
                let last = name.rsplit("::").next().unwrap_or(&name).to_owned();
                *functions.entry(last).or_default() += sample.time.0;
            }
        }
        seen
    }

    /// Asserts the awake time of a function that works for a time by its own CPU clock, in ns. What has no stack may be missing, and the two
    /// samples in which the function begins and ends, but no more than 50 ms.
    #[track_caller]
    pub fn has_time(&self, function: &str, expected: Range<u64>) {
        let time = self.functions.get(function).copied().unwrap_or(0);
        let missing = (self.without_stack + 2 * self.longest).min(50_000_000);
        let range = expected.start - missing..expected.end;
        assert!(range.contains(&time), "{function}: {time} ns of {expected:?}: {self:#?}");
    }

    /// Share of the awake time with this function in the stack.
    pub fn share(&self, function: &str) -> f64 {
        self.functions.get(function).copied().unwrap_or(0) as f64 / self.awake.max(1) as f64
    }

    /// Asserts that there are stacks and that nearly all are complete.
    #[track_caller]
    pub fn is_true(&self, hits: u64) -> &Seen {
        assert!(
            self.hits >= hits,
            "only {} stacks of running threads, {hits} expected: {self:#?}",
            self.hits
        );
        assert!(
            self.whole as f64 >= 0.98 * self.hits as f64,
            "{} of {} stacks are whole",
            self.whole,
            self.hits
        );
        self
    }

    /// Asserts that a function has about this share of the awake time that has stacks, and that little has none: a twentieth, and the
    /// samples in which each thread begins and ends.
    #[track_caller]
    pub fn has_share(&self, function: &str, at_least: f64, at_most: f64) -> &Seen {
        let ends = 2 * self.longest * self.threads as u64;
        assert!(self.without_stack <= self.awake / 20 + ends, "too many stacks are missing: {self:#?}");
        let with_stack = (self.awake - self.without_stack).max(1);
        let share = self.functions.get(function).copied().unwrap_or(0) as f64 / with_stack as f64;
        assert!((at_least..=at_most).contains(&share), "{function} has {share:.3} of {self:#?}");
        self
    }
}
