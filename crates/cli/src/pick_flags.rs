//! `--threads` and `--tasks`: whose samples count.

use crate::failure::Failure;
use clap::Args;
use stackglass_report::{CallTrees, Pick, Source, nothing_picked};

/// The flags of every verb that can leave out threads and tasks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PickFlags {
    /// Only these threads: 2, or 1,3,5-7 (numbers as in `stackglass info`)
    #[arg(long, value_name = "NUMBERS")]
    pub(crate) threads: Option<Pick>,

    /// Only these tasks, by id: 0x7f00 (ids as `print --groupby task` prints them)
    #[arg(long, value_name = "IDS")]
    pub(crate) tasks: Option<Pick>,
}

impl PickFlags {
    /// Whether one of the flags was given.
    pub(crate) fn given(&self) -> bool {
        self.threads.is_some() || self.tasks.is_some()
    }

    /// Whether samples of this thread and task count.
    pub(crate) fn has(&self, thread: u64, task: u64) -> bool {
        let has = |pick: &Option<Pick>, id| pick.as_ref().is_none_or(|pick| pick.has(id));
        has(&self.threads, thread) && has(&self.tasks, task)
    }

    /// Fails if no sample of the input with this name is of these threads and tasks.
    pub(crate) fn check(&self, name: &str, source: Source<'_>) -> Result<(), Failure> {
        match self.given() {
            true => self.check_trees(name, &CallTrees::new(source).map_err(Failure::new)?),
            false => Ok(()),
        }
    }

    /// The same for an input whose stacks are counted already.
    pub(crate) fn check_trees(&self, name: &str, trees: &CallTrees<'_>) -> Result<(), Failure> {
        let [threads, tasks] = [&self.threads, &self.tasks].map(|pick| pick.as_ref().unwrap_or(&Pick::All));
        match nothing_picked(trees, threads, tasks) {
            Some(why) => Err(Failure::new(format!("{name}: {why}"))),
            None => Ok(()),
        }
    }
}
