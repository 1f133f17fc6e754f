//! Profiles by wall time of programs whose tasks can be read from outside: snapshots of all tasks are taken again and again.
//!
//! The thread for them is that of [`stackglass_inspect::task_sampler`]. `samples`: from snapshots to samples. `record`: a process that
//! already runs.

mod record;
mod samples;

pub use record::record;

use crate::recording::children::Children;
use samples::Samples;
use stackglass_inspect::task_sampler::{Command, Message, TaskSampler};
use stackglass_procfs::clock;
use stackglass_profile::Recorder;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two reads of what was seen.
const PAUSE: Duration = Duration::from_millis(50);
/// How long all that was seen is waited for.
const FLUSH: Duration = Duration::from_secs(3);

/// With a larger error, shares are rough.
const ROUGH: f64 = 0.05;

/// A process whose tasks are sampled.
pub(crate) struct WallTime {
    commands: Sender<Command>,
    messages: Receiver<Message>,
    thread: Option<JoinHandle<()>>,
    samples: Samples,
    children: Children,
    has_ended: bool,
    snapshots: Snapshots,
    notes: Vec<String>,
}

/// The task snapshots so far, and the time that they stand for.
#[derive(Default)]
struct Snapshots {
    count: u64,
    /// Seconds.
    sum: f64,
    /// Sum of their squares.
    squares: f64,
}

impl Snapshots {
    fn push(&mut self, time: u64) {
        let time = time as f64 / 1e9;
        self.count += 1;
        self.sum += time;
        self.squares += time * time;
    }

    /// Number of snapshots for equal times whose shares would be as exact (Kish, *Survey Sampling*, 1965).
    fn effective(&self) -> f64 {
        if self.squares > 0.0 { self.sum * self.sum / self.squares } else { self.count as f64 }
    }

    /// Largest standard error of a share, also of tasks that do the same.
    fn error(&self) -> f64 {
        (0.25 / self.effective()).sqrt()
    }
}

impl WallTime {
    /// Begins to sample the tasks of a process. `samples`: at once, not only after [`WallTime::set_sampling`].
    pub(crate) fn begin(pid: u32, delay: Duration, samples: bool) -> WallTime {
        let (commands, received) = mpsc::channel();
        let (sender, messages) = mpsc::channel();
        let sampler = TaskSampler::new(pid, delay, sender);
        let thread = std::thread::Builder::new().name("stackglass-tasks".into());
        let thread = thread.spawn(move || sampler.run(&received, samples));
        let notes = thread.as_ref().err().map(|error| format!("no thread can be started: {error}"));
        WallTime {
            commands,
            messages,
            thread: thread.ok(),
            samples: Samples::default(),
            children: Children::new(pid),
            has_ended: false,
            snapshots: Snapshots::default(),
            notes: notes.into_iter().collect(),
        }
    }

    /// Time until it should be read again.
    pub(crate) fn pause(&self) -> Duration {
        PAUSE
    }

    /// Adds what was seen since the last call.
    pub(crate) fn read(&mut self, recorder: &mut Recorder) {
        self.children.update();
        while let Ok(message) = self.messages.try_recv() {
            self.apply(message, recorder);
        }
    }

    /// Adds all that was seen, which may take a moment: stacks are named first.
    pub(crate) fn read_all(&mut self, recorder: &mut Recorder) {
        if self.commands.send(Command::Flush).is_err() {
            return self.read(recorder);
        }
        let until = Instant::now() + FLUSH;
        while let Ok(message) = self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Message::Flushed = message {
                return;
            }
            self.apply(message, recorder);
        }
    }

    /// Lines for the user since the last call.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Starts or stops sampling.
    pub(crate) fn set_sampling(&mut self, on: bool) {
        // Fails if the process has ended.
        let _ = self.commands.send(Command::Sample(on));
    }

    /// Forgets all samples.
    pub(crate) fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.read(recorder);
        // Each snapshot has its stacks, so none are carried over.
        drop(recorder.clear_samples());
    }

    /// Whether a snapshot has been taken: first, types are read.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshots.count > 0
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Ends, and adds all that was seen.
    pub(crate) fn close(&mut self, recorder: &mut Recorder) {
        let _ = self.commands.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // If it has panicked, what it had sent counts.
            let _ = thread.join();
        }
        self.read(recorder);
        self.samples.end(clock::monotonic(), recorder);
        if self.snapshots.count > 0 && self.snapshots.error() > ROUGH {
            let snapshots = match self.snapshots.count {
                1 => "there was only 1 snapshot".to_owned(),
                count => format!("there were only {count} snapshots"),
            };
            recorder.remark(format!(
                "the shares are rough: {snapshots} of the tasks, so they may be off by some {:.0} %; record for longer",
                100.0 * self.snapshots.error(),
            ));
        }
        if let Some(remark) = self.children.remark() {
            recorder.remark(remark);
        }
    }

    fn apply(&mut self, message: Message, recorder: &mut Recorder) {
        match message {
            Message::Process(process) => self.samples.process(process, recorder),
            Message::Modules(modules) => self.samples.modules(modules, recorder),
            Message::Threads { at, threads } => self.samples.threads(at, &threads, recorder),
            Message::Stacks { at, time, taken, stacks } => {
                self.snapshots.push(time);
                self.samples.stacks((at, time, taken), &stacks, recorder);
            }
            Message::Note(line) => {
                recorder.remark(line.clone());
                self.notes.push(line);
            }
            Message::Flushed => {}
            Message::Ended => self.has_ended = true,
        }
    }
}

impl Drop for WallTime {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_for_unequal_times_are_less_exact() {
        let error = |times: &[u64]| {
            let mut snapshots = Snapshots::default();
            times.iter().for_each(|time| snapshots.push(*time * 1_000_000));
            snapshots.error()
        };
        assert!((error(&[40; 100]) - 0.05).abs() < 1e-9);
        assert!((error(&[0; 4]) - 0.25).abs() < 1e-9);
        // One snapshot stands for a third of the time, and may be wrong in that of all of it.
        let mut times = vec![40; 100];
        times.push(2000);
        assert!((error(&times) - 0.17).abs() < 1e-3, "{}", error(&times));
    }
}
