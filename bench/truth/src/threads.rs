//! Hits, time awake and time asleep of each thread in a recording.

use serde_json::{Value, json};
use stackglass_profile::Recording;

/// The sums of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadAccount {
    /// Kernel id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Last name.
    pub name: String,
    /// Stacks taken while it ran.
    pub hits_awake: u64,
    /// Stacks taken while it slept.
    pub hits_asleep: u64,
    /// Time awake, ns.
    pub awake: u64,
    /// Time asleep, ns.
    pub asleep: u64,
    /// Samples whose stack is cut.
    pub cut: u64,
}

/// All threads, in the recording's order.
pub fn accounts(recording: &Recording) -> Vec<ThreadAccount> {
    let mut all: Vec<ThreadAccount> = recording
        .threads
        .iter()
        .map(|thread| ThreadAccount {
            tid: thread.tid,
            pid: recording.processes.get(thread.process.0 as usize).map_or(0, |process| process.pid),
            name: thread.name.to_string(),
            ..ThreadAccount::default()
        })
        .collect();
    for sample in &recording.samples {
        let Some(account) = all.get_mut((sample.thread.0 as usize).wrapping_sub(1)) else { continue };
        let hits = u64::from(sample.hits);
        if !sample.state.uses_cpu() {
            account.hits_asleep += hits;
            account.asleep += sample.time.0;
        } else {
            account.hits_awake += hits;
            account.awake += sample.time.0;
        }
        account.cut += if sample.cut.is_some() { hits } else { 0 };
    }
    all
}

/// As JSON: a list.
pub fn json(accounts: &[ThreadAccount]) -> Value {
    accounts
        .iter()
        .map(|a| {
            json!({
                "tid": a.tid, "pid": a.pid, "name": a.name, "hits_awake": a.hits_awake,
                "hits_asleep": a.hits_asleep, "awake_ns": a.awake, "asleep_ns": a.asleep, "cut": a.cut,
            })
        })
        .collect()
}
