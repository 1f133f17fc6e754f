//! Whether any thread of a process has run.
//!
//! While none has, its tasks are what they were at the last snapshot, and the process is left alone.

use foldhash::HashMap;
use stackglass_proc_text::SchedStat;
use stackglass_procfs::threads::{self, Files};

/// Most threads that are compared.
const MOST: usize = 64;

/// How much the threads of a process have run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct RunTimes(Vec<(u32, SchedStat)>);

impl RunTimes {
    /// Of these threads, by kernel id.
    pub(super) fn new(times: Vec<(u32, SchedStat)>) -> RunTimes {
        RunTimes(times)
    }

    /// The part of the time since `earlier` in which threads that could run had a CPU. 1 if none could.
    pub(super) fn cpu_share(&self, earlier: &RunTimes) -> f64 {
        let (mut ran, mut waited) = (0u64, 0u64);
        for ((tid, now), (other, before)) in self.0.iter().zip(&earlier.0) {
            if tid != other {
                break;
            }
            ran = ran.saturating_add(now.ran.saturating_sub(before.ran));
            waited = waited.saturating_add(now.waited.saturating_sub(before.waited));
        }
        if ran == 0 { 1.0 } else { ran as f64 / (ran as f64 + waited as f64) }
    }

    /// How long threads ran, or were ready to, since `earlier`, ns. All of the time of threads that are new counts; that of threads
    /// that have ended is missing.
    pub(super) fn ran_since(&self, earlier: &RunTimes) -> u64 {
        let all = |stat: &SchedStat| stat.ran.saturating_add(stat.waited);
        let before: HashMap<u32, u64> = earlier.0.iter().map(|(tid, stat)| (*tid, all(stat))).collect();
        let of =
            |(tid, stat): &(u32, SchedStat)| all(stat).saturating_sub(before.get(tid).copied().unwrap_or(0));
        self.0.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Whether none of the threads has run since, and all of them live.
    pub(super) fn are_still(&self, pid: u32) -> bool {
        self.0.iter().all(|(tid, before)| Files::new(pid, *tid).stat() == Some(*before))
    }

    /// As they are now. `None` if there are too many threads, or the kernel does not tell.
    pub(super) fn read(pid: u32) -> Option<RunTimes> {
        let tids = threads::list(pid);
        if tids.is_empty() || tids.len() > MOST {
            return None;
        }
        let times = tids.into_iter().map(|tid| Some((tid, Files::new(pid, tid).stat()?)));
        times.collect::<Option<_>>().map(RunTimes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_cpu_is_no_running() {
        let times = |ran, waited| RunTimes::new(vec![(7, SchedStat { ran, waited, turns: 3 })]);
        assert!((times(4000, 1900).cpu_share(&times(1000, 900)) - 0.75).abs() < 1e-9);
        assert!((times(1000, 900).cpu_share(&times(1000, 900)) - 1.0).abs() < 1e-9);
        assert_eq!(times(4000, 1900).ran_since(&times(1000, 900)), 4000);
        assert_eq!(times(4000, 1900).ran_since(&RunTimes::default()), 5900);
    }

    #[test]
    fn a_sleeping_process_does_not_run() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let read = || RunTimes::read(child.id());
        let mut before = read();
        // It starts first.
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = read();
            if now.is_some() && now == before {
                break;
            }
            before = now;
        }
        assert!(before.is_some() && before == read());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(RunTimes::read(child.id()), None);
    }
}
