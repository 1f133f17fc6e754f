//! `--pid`, `--name` and `--cgroup`: which running processes are recorded.

use crate::failure::Failure;
use crate::message;
use crate::values::process_id;
use clap::{ArgGroup, Args};
use stackglass_procfs::Status;
use stackglass_procfs::process::{descends_from, executable};
use stackglass_procfs::status::process_of;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The flags.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("running").multiple(false))]
pub(crate) struct ChosenFlags {
    /// Record the running processes with these ids (1234 or 1234,1240) and their children; they run on
    #[arg(long, value_name = "PID", group = "running", value_delimiter = ',', value_parser = process_id, conflicts_with_all = ["command", "track_allocation"])]
    pid: Vec<u32>,

    /// Record all running processes of this name, as ps shows it or as their executable is called
    #[arg(long, group = "running", conflicts_with_all = ["command", "track_allocation"])]
    name: Option<String>,

    /// Record all running processes of this control group: a folder, absolute or in /sys/fs/cgroup
    #[arg(long, group = "running", conflicts_with_all = ["command", "track_allocation"])]
    cgroup: Option<PathBuf>,
}

impl ChosenFlags {
    /// Whether running processes are recorded.
    pub(crate) fn are_given(&self) -> bool {
        !self.pid.is_empty() || self.name.is_some() || self.cgroup.is_some()
    }

    /// The processes, each once, in the order of their ids. `with_children`: without those that descend from others of them.
    pub(crate) fn processes(&self, with_children: bool, quiet: bool) -> Result<Vec<u32>, Failure> {
        let found: BTreeSet<u32> = match (&self.name, &self.cgroup) {
            (Some(name), _) => named(name),
            (_, Some(folder)) => members(folder)?,
            _ => self.pid.iter().map(|pid| whole(*pid, quiet)).collect(),
        };
        if found.is_empty() {
            let what = match (&self.name, &self.cgroup) {
                (Some(name), _) => format!("no running process has the name `{name}`"),
                (_, Some(folder)) => format!("the control group {} has no processes", folder.display()),
                _ => "no process is given".to_owned(),
            };
            return Err(Failure::new(what));
        }
        let is_child = |pid: &u32| found.iter().any(|other| other != pid && descends_from(*pid, *other));
        Ok(found.iter().copied().filter(|pid| !with_children || !is_child(pid)).collect())
    }
}

/// The process of a thread.
fn whole(pid: u32, quiet: bool) -> u32 {
    let process = process_of(pid);
    if process != pid && !quiet {
        message::print(&format!("{pid} is a thread of process {process}: the whole process is recorded"));
    }
    process
}

/// The processes of a name, without this one.
fn named(name: &str) -> BTreeSet<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_named = |pid: &u32| {
        *pid != std::process::id()
            && Status::read(*pid).is_some_and(|status| {
                !status.has_ended()
                    && (status.name == name || executable(*pid).file_name().is_some_and(|file| file == name))
            })
    };
    pids.filter(is_named).collect()
}

/// The processes of a control group and of those in it, without this one.
fn members(group: &Path) -> Result<BTreeSet<u32>, Failure> {
    // An absolute path replaces the first part.
    let mut folders = vec![Path::new("/sys/fs/cgroup").join(group)];
    let mut found = BTreeSet::new();
    let mut is_first = true;
    while let Some(folder) = folders.pop() {
        match fs::read_to_string(folder.join("cgroup.procs")) {
            Ok(text) => found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok())),
            // Groups within may go meanwhile.
            Err(error) if is_first => {
                let line = format!("{} is no control group: {error}", folder.display());
                return Err(Failure::new(line));
            }
            Err(_) => {}
        }
        is_first = false;
        let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    found.remove(&0);
    found.remove(&std::process::id());
    Ok(found)
}
