//! Names of processes that used CPU time and have no samples: static and set-uid programs, or programs that end too
//! quickly, depending on the sampler.
//!
//! The kernel's CPU time of the whole program does not say which of its processes used it. So the CPU times of all
//! descendants are read a few times a second, and compared with the recording at its end. What a process uses after
//! the last reading is unknown, so each time is a lower bound.

use super::unaccounted_cpu::missing;
use stackglass_procfs::clock;
use stackglass_procfs::process::{CpuUsage, children};
use stackglass_profile::frame::file_name;
use stackglass_profile::{Nanos, Process, Recording, sanitize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time between two readings.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Between these limits, the pause is this multiple of the CPU time of a reading.
const SHARE: u32 = 200;
/// The kernel's CPU times are rounded to this, ns. Shorter times are not mentioned.
const TICK: u64 = 10_000_000;
/// Number of names in the remark.
const NAMED: usize = 5;

/// One process, by its id and its start in ticks.
type Key = (u32, u64);

/// What the descendants of a program have used so far.
pub(super) struct CpuTimes {
    program: u32,
    /// Processes that have not ended.
    live: BTreeSet<Key>,
    seen: BTreeMap<Key, Seen>,
    next: Instant,
}

/// The last reading of one process.
struct Seen {
    name: String,
    cpu: u64,
    /// When it was read, CLOCK_MONOTONIC ns.
    at: u64,
}

impl CpuTimes {
    /// The program and its descendants, none of them read yet.
    pub(super) fn new(program: u32) -> CpuTimes {
        CpuTimes {
            program,
            live: BTreeSet::new(),
            seen: BTreeMap::new(),
            next: Instant::now() + SHORTEST_PAUSE,
        }
    }

    /// Reads the CPU times, if that is due.
    pub(super) fn update(&mut self) {
        if Instant::now() >= self.next {
            // Wall time would say little on a busy machine.
            let before = clock::thread_cpu();
            self.read();
            let cost = Duration::from_nanos(clock::thread_cpu().saturating_sub(before));
            self.next = Instant::now() + (cost * SHARE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        }
    }

    fn read(&mut self) {
        if self.seen.is_empty()
            && let Some(usage) = CpuUsage::read(self.program)
        {
            self.live.insert((self.program, usage.started));
        }
        let mut left: Vec<Key> = std::mem::take(&mut self.live).into_iter().collect();
        while let Some((pid, started)) = left.pop() {
            if self.live.contains(&(pid, started)) {
                continue;
            }
            // Another start: the id is that of another process by now.
            let Some(usage) = CpuUsage::read(pid).filter(|usage| usage.started == started) else { continue };
            for child in children(pid) {
                left.extend(
                    CpuUsage::read(child)
                        .filter(|usage| usage.parent == pid)
                        .map(|usage| (child, usage.started)),
                );
            }
            self.live.insert((pid, started));
            let cpu = clock::of_ticks(usage.ticks);
            self.seen.insert((pid, started), Seen { name: usage.name, cpu, at: clock::monotonic() });
        }
    }

    /// The remark that names processes without samples. `kernel`: the CPU time of the whole program.
    pub(super) fn remark(&self, kernel: Nanos, sampler_cpu: Nanos, recording: &Recording) -> Option<String> {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for ((pid, started), seen) in &self.seen {
            let images = Images::find(*pid, clock::since_boot(*started), seen.at, recording);
            let unsampled = seen.cpu.saturating_sub(images.cpu());
            // A process with a sampler inside has used more than its samples.
            if unsampled >= TICK && images.cpu() < seen.cpu / 2 && !images.have_name(&seen.name) {
                *times.entry(&seen.name).or_default() += unsampled;
            }
        }
        let all: u64 = times.values().sum();
        // If more seems to be unsampled than is missing, the recording knows some of these processes by other ids.
        if all == 0 || all > missing(kernel, sampler_cpu, recording) + 2 * TICK {
            return None;
        }
        let mut times: Vec<(&str, u64)> = times.into_iter().collect();
        times.sort_by_key(|(name, time)| (std::cmp::Reverse(*time), *name));
        let mut parts: Vec<String> = times
            .iter()
            .take(NAMED)
            .map(|(name, time)| format!("{} {:.2} s", sanitize(name), Nanos(*time).seconds()))
            .collect();
        if times.len() > NAMED {
            let rest: u64 = times[NAMED..].iter().map(|(_, time)| time).sum();
            parts.push(format!("{} others {:.2} s", times.len() - NAMED, Nanos(rest).seconds()));
        }
        Some(format!("not sampled, with at least this CPU time: {}", parts.join(", ")))
    }
}

/// What the recording has of one process.
struct Images<'a> {
    recording: &'a Recording,
    indices: Vec<usize>,
}

impl Images<'_> {
    /// The images of a process that started at `start` and was last read at `at`.
    fn find(pid: u32, start: u64, at: u64, recording: &Recording) -> Images<'_> {
        let is_of = |process: &Process| {
            process.pid == pid && process.start.0 + 2 * TICK >= start && process.start.0 <= at
        };
        let images = recording.processes.iter().enumerate().filter(|(_, process)| is_of(process));
        Images { recording, indices: images.map(|(index, _)| index).collect() }
    }

    /// CPU time of their samples.
    fn cpu(&self) -> u64 {
        let threads = self.recording.threads.iter();
        let threads = threads.filter(|thread| self.indices.contains(&(thread.process.0 as usize)));
        threads.map(|thread| thread.cpu.0).sum()
    }

    /// Whether one of them runs what the kernel calls `name`: its executable, the link that was executed, or a script.
    fn have_name(&self, name: &str) -> bool {
        let is_name = |path: &str| file_name(path).bytes().take(15).eq(name.bytes());
        self.indices.iter().map(|index| &self.recording.processes[*index]).any(|process| {
            is_name(&process.exe) || process.arguments.iter().take(3).any(|word| is_name(word))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{ProcessIndex, Thread};
    use std::process::Command;

    const SECOND: u64 = 1_000_000_000;

    fn times(of: &[(u32, &str, u64)]) -> CpuTimes {
        let mut times = CpuTimes::new(1);
        let at = clock::monotonic();
        for (pid, name, cpu) in of {
            times.seen.insert((*pid, 0), Seen { name: (*name).into(), cpu: *cpu, at });
        }
        times
    }

    /// A recording of processes with these ids and CPU times.
    fn recording(of: &[(u32, u64)]) -> Recording {
        let mut recording = Recording::default();
        for (pid, cpu) in of {
            let process = ProcessIndex(recording.processes.len() as u32);
            recording.processes.push(Process { pid: *pid, start: Nanos(5), ..Process::default() });
            recording.threads.push(Thread {
                process,
                tid: *pid,
                name: "t".into(),
                start: Nanos(5),
                end: None,
                cpu: Nanos(*cpu),
                blocked_signal: false,
            });
        }
        recording
    }

    #[test]
    fn processes_without_samples_are_named_with_their_time() {
        let times = times(&[
            (2, "sh", SECOND),
            (3, "ffmpeg", SECOND),
            (4, "ffmpeg", SECOND / 5),
            (5, "awk", 30_000_000),
            (6, "true", 0),
        ]);
        let remark = |kernel: u64, of: &[(u32, u64)]| {
            times.remark(Nanos(kernel), Nanos(0), &recording(of)).unwrap_or_default()
        };
        assert_eq!(
            remark(3 * SECOND, &[(2, SECOND), (4, 1_000_000)]),
            "not sampled, with at least this CPU time: ffmpeg 1.20 s, awk 0.03 s"
        );
        // A sampler inside has used time of the shell.
        let mut sampled = recording(&[(2, SECOND / 10), (3, SECOND), (4, SECOND / 5)]);
        sampled.processes[0].exe = "/bin/dash".into();
        sampled.processes[0].arguments = vec!["/bin/sh".into(), "-c".into()];
        let named = times.remark(Nanos(3 * SECOND), Nanos(0), &sampled);
        assert_eq!(named.as_deref(), Some("not sampled, with at least this CPU time: awk 0.03 s"));
        // Nothing is missing: the recording has them under another id.
        assert_eq!(remark(3 * SECOND, &[(2, SECOND), (77, 2 * SECOND - TICK)]), "");
        assert_eq!(remark(3 * SECOND, &[(2, SECOND), (3, SECOND), (4, SECOND / 5), (5, 29_000_000)]), "");
    }

    #[test]
    fn an_id_that_was_used_again_is_another_process() {
        let cpu = |pid, start, at, recording: &Recording| Images::find(pid, start, at, recording).cpu();
        let mut recording = recording(&[(3, SECOND)]);
        assert_eq!(cpu(3, 0, SECOND, &recording), SECOND);
        recording.processes[0].start = Nanos(5 * SECOND);
        assert_eq!(cpu(3, 0, SECOND, &recording), 0, "it started after the reading");
        assert_eq!(cpu(3, 6 * SECOND, 7 * SECOND, &recording), 0, "it started before the process");
        assert_eq!(cpu(3, 5 * SECOND + TICK, 7 * SECOND, &recording), SECOND);
    }

    #[test]
    fn descendants_are_read() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60' & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut times = CpuTimes::new(child.id());
        let until = Instant::now() + Duration::from_secs(60);
        while times.live.len() < 3 {
            assert!(Instant::now() < until, "three processes");
            std::thread::sleep(Duration::from_millis(10));
            times.read();
        }
        let (_, loop_) =
            times.seen.iter().find(|((pid, _), seen)| *pid != child.id() && seen.cpu > 0).unwrap();
        assert_eq!(loop_.name, "sh");
        let others: Vec<u32> =
            times.live.iter().map(|(pid, _)| *pid).filter(|pid| *pid != child.id()).collect();
        for pid in others.iter().map(u32::to_string).chain([child.id().to_string()]) {
            Command::new("kill").args(["-KILL", &pid]).status().unwrap();
        }
        child.wait().unwrap();
    }
}
