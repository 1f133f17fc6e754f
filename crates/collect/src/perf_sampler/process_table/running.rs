//! Which thread has which CPU: switches, and what to do where records of them were lost.

use super::super::events::Source;
use super::super::on_cpus::Doubt;
use super::super::time::Phase;
use super::{ProcessTable, has_id, some_of};
use stackglass_profile::Recorder;

impl ProcessTable {
    /// A thread gets a CPU or leaves it. With events of CPUs, it may be another program's.
    pub(super) fn switch(
        &mut self,
        cpu: usize,
        pid: u32,
        tid: u32,
        phase: Phase,
        at: u64,
        recorder: &mut Recorder,
    ) {
        let is_only = self.follow_children || *self.only.get_or_insert(pid) == pid;
        let ours = has_id(pid, tid) && is_only && self.is_ours(pid) && !self.ended.contains(&tid);
        let known = ours.then_some(tid);
        if phase == Phase::Running {
            let before = self.on_cpus.thread_on(cpu);
            for doubt in self.on_cpus.switched_in(cpu, known, at).into_iter().flatten() {
                self.doubt(doubt);
            }
            self.finish_ending(before.filter(|before| Some(*before) != known), at, recorder);
        } else {
            // A thread without an id has ended.
            let without = !has_id(pid, tid) && pid != 0;
            let (left, doubt) = match known.is_some() || without {
                true => self.on_cpus.switched_out(cpu, known, at),
                false => (None, self.on_cpus.lost(cpu, at)),
            };
            if let Some(doubt) = doubt {
                self.doubt(doubt);
                self.finish_ending(Some(doubt.tid), at, recorder);
            }
            if ours
                && left.is_none()
                && let Some(thread) = self.threads.get_mut(&tid)
            {
                // When it got the CPU is not known.
                thread.doubt(0);
            }
            // A thread that is ending may have to wait for its CPU once more.
            let goes_on = known.is_some() && phase == Phase::Ready;
            if !goes_on && left.is_some_and(|left| self.ending.contains(&left)) {
                return self.finish_ending(left, at, recorder);
            }
        }
        if ours {
            self.enter(pid, tid, phase, at);
        }
    }

    /// A thread is known to run on this CPU, without a record of a switch.
    pub(super) fn runs_on(&mut self, cpu: usize, tid: u32, at: u64) {
        for doubt in self.on_cpus.switched_in(cpu, Some(tid), at).into_iter().flatten() {
            self.doubt(doubt);
        }
    }

    /// Records of one ring were lost.
    pub(super) fn lose(&mut self, source: Source, at: u64, n: u64) {
        if source.is_sample {
            self.lost_samples = self.lost_samples.saturating_add(n);
            return;
        }
        self.lost = self.lost.saturating_add(n);
        self.lost_now = true;
        self.threads.values_mut().for_each(|thread| thread.time.note_loss());
        if let Some(doubt) = self.on_cpus.lost(source.cpu, at) {
            self.doubt(doubt);
        }
    }

    /// What a thread did since is not known.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if let Some(thread) = self.threads.get_mut(&doubt.tid) {
            thread.doubt(doubt.since);
        }
    }

    /// A thread that was ending has left its CPU.
    fn finish_ending(&mut self, tid: Option<u32>, at: u64, recorder: &mut Recorder) {
        let Some(index) = self.ending.iter().position(|ending| Some(*ending) == tid) else { return };
        let tid = self.ending.swap_remove(index);
        self.exit(tid, at, recorder);
    }

    /// Compares threads with the kernel's account. That of a thread which waits for a CPU is exact. One that seems to run may have left
    /// its CPU: the switch may be among lost records. Records are known up to `until`.
    pub(super) fn check_accounts(&mut self, until: u64) {
        for cpu in 0..self.on_cpus.cpus() {
            let Some(tid) = self.on_cpus.thread_on(cpu) else { continue };
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            if let Some(stat) = self.system.account(tid, &mut thread.files) {
                thread.time.bound(stat.ran, until, &self.cost);
            }
        }
        for tid in some_of(&self.moved, self.drain) {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            if thread.time.phase() == Phase::Ready
                && let Some(stat) = self.system.account(tid, &mut thread.files)
            {
                thread.time.read(stat, self.system.now(), &mut self.cost);
            }
        }
    }
}
