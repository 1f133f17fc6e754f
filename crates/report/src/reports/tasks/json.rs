//! Tasks for programs, as documented in `docs/json.md`.

use super::groups::{TaskGroup, groups};
use super::text::{group_name, timers};
use super::threads::JsonThread;
use super::{origins, threads};
use crate::text::json::{self, InLine, Rows};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use stackglass_profile::task_dump::{
    AwaitFrame, AwaitPoint, Deadlock as Cycle, Lock as Shared, TaskDump, TaskState, WaitTarget,
};
use std::io::{self, Write};
use std::slice;

/// Writes the tasks of a process as one object.
///
/// # Errors
/// When writing fails.
pub fn write_json(dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    json::write(&JsonTasks(dump), out)
}

/// The tasks of a process. They are grouped while they are written.
pub(in crate::reports) struct JsonTasks<'a>(pub &'a TaskDump);

#[derive(Serialize)]
struct Report<'a, G> {
    pid: u32,
    runtime: Option<&'a str>,
    runtimes: Vec<&'a str>,
    tasks: usize,
    groups: G,
    blocking: Vec<u64>,
    pools: Vec<Pool>,
    without_waker: Vec<u64>,
    deadlocks: Vec<Deadlock>,
    locks: Vec<Lock<'a>>,
    pause: u64,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct Group<'a> {
    count: usize,
    ids: Vec<u64>,
    state: &'a str,
    name: &'a str,
    root: &'a str,
    tid: Option<u32>,
    stack: InLine<Stack<'a>>,
    source: &'static str,
    waited: Option<u64>,
    unpolled: Option<Unpolled>,
    fires_in: Option<[u64; 2]>,
    given_names: Vec<&'a str>,
    created: Vec<Place<'a>>,
    thread: Option<JsonThread<'a>>,
}

/// Tasks that are known not to have been polled for some time, ns.
#[derive(Serialize)]
struct Unpolled {
    time: u64,
    ids: Vec<u64>,
}

/// Where tasks were created.
#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
}

/// An await stack, outermost frame first. Where it branches, the last element has the branches.
struct Stack<'a>(&'a [AwaitFrame]);

#[derive(Serialize)]
struct Awaiting<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Branches<'a> {
    branches: Vec<Stack<'a>>,
}

#[derive(Serialize)]
struct Pool {
    busy: Option<u64>,
    queued: u64,
    exhausted: bool,
}

#[derive(Serialize)]
struct Deadlock {
    tasks: Vec<u64>,
    via: Vec<String>,
    certain: bool,
}

#[derive(Serialize)]
struct Lock<'a> {
    kind: &'a str,
    address: String,
    holders: Vec<Holder<'a>>,
    waiters: Vec<u64>,
    arrived: Option<u64>,
    expected: Option<u64>,
    ends: Option<u64>,
}

#[derive(Serialize)]
struct Holder<'a> {
    task: u64,
    file: Option<&'a str>,
    line: Option<u32>,
    described: bool,
    certain: bool,
}

impl Serialize for JsonTasks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dump = self.0;
        let groups = groups(dump);
        let report = Report {
            pid: dump.pid,
            runtime: dump.runtimes.first().map(|runtime| &*runtime.name),
            runtimes: dump.runtimes.iter().map(|runtime| &*runtime.name).collect(),
            tasks: dump.count(),
            groups: Rows(groups.iter().map(|group| Group::from_group(dump, group))),
            blocking: ids(dump, &dump.blocking()),
            without_waker: ids(dump, &without_waker(dump).collect::<Vec<_>>()),
            pools: dump
                .pools
                .iter()
                .map(|pool| Pool { busy: pool.busy, queued: pool.queued, exhausted: pool.is_exhausted })
                .collect(),
            deadlocks: dump.deadlocks.iter().map(|cycle| Deadlock::from_cycle(dump, cycle)).collect(),
            locks: dump.locks.iter().map(|lock| Lock::from_shared(dump, lock)).collect(),
            pause: dump.pause.0,
            remarks: &dump.remarks,
        };
        report.serialize(serializer)
    }
}

/// The tasks that nothing can wake, by index.
pub(super) fn without_waker(dump: &TaskDump) -> impl Iterator<Item = usize> {
    (0..dump.tasks.len()).filter(|task| dump.tasks[*task].has_no_waker)
}

/// The runtime's ids of tasks, which are given by index.
fn ids(dump: &TaskDump, tasks: &[usize]) -> Vec<u64> {
    tasks.iter().map(|task| dump.tasks[*task].id).collect()
}

impl<'a> Group<'a> {
    fn from_group(dump: &'a TaskDump, group: &'a TaskGroup<'_>) -> Group<'a> {
        Group {
            count: group.tasks.len(),
            ids: ids(dump, &group.tasks).into_iter().filter(|id| *id != 0).collect(),
            state: group.state.word(),
            name: group_name(group),
            root: &group.name,
            tid: match group.state {
                TaskState::BlockOn(tid) => Some(tid),
                _ => None,
            },
            stack: InLine(Stack(group.stack)),
            source: origins::source_word(group.source),
            waited: group.waited.map(|time| time.0),
            unpolled: Unpolled::from_group(dump, group),
            fires_in: timers(dump, group).map(|(first, last)| [first.0, last.0]),
            given_names: origins::given_names(dump, group),
            created: origins::created(dump, group)
                .into_iter()
                .map(|(file, line)| Place { file, line: *line })
                .collect(),
            thread: threads::json(dump, group),
        }
    }
}

impl Unpolled {
    fn from_group(dump: &TaskDump, group: &TaskGroup<'_>) -> Option<Unpolled> {
        let known = |task: &usize| Some((dump.tasks[*task].unpolled?.0, dump.tasks[*task].id));
        let known: Vec<(u64, u64)> = group.tasks.iter().filter_map(known).collect();
        let time = known.iter().map(|(time, _)| *time).min()?;
        Some(Unpolled { time, ids: known.into_iter().map(|(_, id)| id).collect() })
    }
}

impl Serialize for Stack<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut elements = serializer.serialize_seq(None)?;
        let mut now = self.0;
        while let [frame] = now {
            elements.serialize_element(&Awaiting::from_frame(frame))?;
            now = &frame.children;
        }
        if !now.is_empty() {
            let branches = now.iter().map(|frame| Stack(slice::from_ref(frame))).collect();
            elements.serialize_element(&Branches { branches })?;
        }
        elements.end()
    }
}

impl Awaiting<'_> {
    fn from_frame(frame: &AwaitFrame) -> Awaiting<'_> {
        let (file, line, note) = match &frame.point {
            AwaitPoint::Await(Some((file, line))) => (Some(&**file), Some(*line), None),
            AwaitPoint::Await(None) => (None, None, None),
            AwaitPoint::NotStarted => (None, None, Some("not started".to_owned())),
            AwaitPoint::Finished => (None, None, Some("finished".to_owned())),
            AwaitPoint::Leaf => (None, None, Some("leaf".to_owned())),
            AwaitPoint::Lost(why) => (None, None, Some(format!("not followed: {why}"))),
        };
        Awaiting { function: &frame.function, file, line, note }
    }
}

impl Deadlock {
    fn from_cycle(dump: &TaskDump, cycle: &Cycle) -> Deadlock {
        Deadlock {
            tasks: ids(dump, &cycle.tasks),
            via: cycle.via.iter().map(|target| target_text(*target)).collect(),
            certain: cycle.is_certain,
        }
    }
}

impl Lock<'_> {
    fn from_shared<'a>(dump: &TaskDump, lock: &'a Shared) -> Lock<'a> {
        let holders = lock.holders.iter().map(|holder| Holder {
            task: dump.tasks[holder.task].id,
            file: holder.line.as_ref().map(|(file, _)| &**file),
            line: holder.line.as_ref().map(|(_, line)| *line),
            described: holder.is_described,
            certain: holder.is_certain,
        });
        Lock {
            kind: lock.kind.name(),
            address: format!("{:#x}", lock.address),
            holders: holders.collect(),
            waiters: ids(dump, &lock.waiters),
            arrived: lock.arrived.map(|(arrived, _)| arrived),
            expected: lock.arrived.map(|(_, all)| all),
            ends: lock.ends,
        }
    }
}

/// `Mutex 0x7f00`, `task 12`.
pub(super) fn target_text(target: WaitTarget) -> String {
    match target {
        WaitTarget::Task(id) => format!("task {id}"),
        WaitTarget::Shared { kind, address } => format!("{} {address:#x}", kind.name()),
    }
}
