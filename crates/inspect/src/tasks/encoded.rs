//! The bytes in which a child process sends what it has read of its parent's tasks.
//!
//! Numbers are little-endian groups of 7 bits. A text that was sent before is only a number: tasks in the same place have the same
//! texts. The reader checks all lengths, and takes nothing that is not whole.

use foldhash::{HashMap, HashSet};
use stackglass_profile::task_dump::{
    AsyncRuntime, AwaitFrame, AwaitPoint, AwaitSource, BlockingPool, Deadlock, DumpedTask, Holder, Lock,
    PollingThread, SharedKind, TaskDump, TaskState, WaitTarget,
};
use stackglass_profile::{Frame, Nanos};
use std::sync::{Arc, Mutex, PoisonError};

/// Begin and end of the bytes.
const HEAD: u64 = 0x6b73_6174;
const END: u64 = 0x0064_6e65;
/// Deepest await stack that is read; walks are bounded below it.
const DEEPEST: u32 = 2000;
/// Most reasons why a chain ends.
const MOST_REASONS: usize = 64;

const KINDS: [SharedKind; 12] = [
    SharedKind::Mutex,
    SharedKind::RwLock,
    SharedKind::Semaphore,
    SharedKind::FullChannel,
    SharedKind::Notify,
    SharedKind::Oneshot,
    SharedKind::EmptyChannel,
    SharedKind::Watch,
    SharedKind::Barrier,
    SharedKind::OtherMutex,
    SharedKind::BlockingMutex,
    SharedKind::BlockingRwLock,
];
const SOURCES: [AwaitSource; 2] = [AwaitSource::Types, AwaitSource::RootName];

/// A dump as bytes.
pub(super) fn encode(dump: &TaskDump) -> Vec<u8> {
    let mut to = Encoder { bytes: Vec::new(), texts: HashMap::default() };
    to.number(HEAD);
    to.number(dump.pid.into());
    to.text(&dump.program);
    to.list(&dump.runtimes, |to, runtime| to.text(&runtime.name));
    to.list(&dump.tasks, Encoder::task);
    to.list(&dump.pools, |to, pool| {
        to.option(pool.busy, Encoder::number);
        to.number(pool.queued);
        to.flag(pool.is_exhausted);
    });
    to.list(&dump.locks, |to, lock| {
        to.kind(lock.kind);
        to.number(lock.address);
        to.list(&lock.holders, |to, holder| {
            to.number(holder.task as u64);
            to.option(holder.line.as_ref(), Encoder::place);
            to.flag(holder.is_described);
            to.flag(holder.is_certain);
            to.number(holder.permits);
            to.flag(holder.is_shared);
        });
        to.list(&lock.waiters, |to, waiter| to.number(*waiter as u64));
        to.option(lock.arrived, |to, (arrived, all)| {
            to.number(arrived);
            to.number(all);
        });
        to.option(lock.ends, Encoder::number);
    });
    to.list(&dump.deadlocks, |to, deadlock| {
        to.list(&deadlock.tasks, |to, task| to.number(*task as u64));
        to.list(&deadlock.via, |to, target| to.target(*target));
        to.flag(deadlock.is_certain);
    });
    to.number(dump.pause.0);
    to.list(&dump.remarks, |to, remark| to.text(remark));
    to.number(END);
    to.bytes
}

/// The dump in bytes. `None` if they are not whole.
pub(super) fn decode(bytes: &[u8]) -> Option<TaskDump> {
    let mut from = Decoder { bytes, texts: Vec::new() };
    if from.number()? != HEAD {
        return None;
    }
    let dump = TaskDump {
        pid: from.number()? as u32,
        program: from.text()?.to_string(),
        runtimes: from.list(|from| Some(AsyncRuntime { name: from.text()?.to_string() }))?,
        tasks: from.list(Decoder::task)?,
        pools: from.list(|from| {
            Some(BlockingPool {
                busy: from.option(Decoder::number)?,
                queued: from.number()?,
                is_exhausted: from.flag()?,
            })
        })?,
        locks: from.list(|from| {
            Some(Lock {
                kind: from.kind()?,
                address: from.number()?,
                holders: from.list(|from| {
                    Some(Holder {
                        task: from.number()? as usize,
                        line: from.option(Decoder::place)?,
                        is_described: from.flag()?,
                        is_certain: from.flag()?,
                        permits: from.number()?,
                        is_shared: from.flag()?,
                    })
                })?,
                waiters: from.list(|from| Some(from.number()? as usize))?,
                arrived: from.option(|from| Some((from.number()?, from.number()?)))?,
                ends: from.option(Decoder::number)?,
            })
        })?,
        deadlocks: from.list(|from| {
            Some(Deadlock {
                tasks: from.list(|from| Some(from.number()? as usize))?,
                via: from.list(Decoder::target)?,
                is_certain: from.flag()?,
            })
        })?,
        read_at: None,
        pause: Nanos(from.number()?),
        remarks: from.list(|from| Some(from.text()?.to_string()))?,
    };
    let tasks = dump.tasks.len();
    let of_locks = dump
        .locks
        .iter()
        .flat_map(|lock| lock.holders.iter().map(|holder| holder.task).chain(lock.waiters.iter().copied()));
    let mut indices =
        of_locks.chain(dump.deadlocks.iter().flat_map(|deadlock| deadlock.tasks.iter().copied()));
    let is_valid = indices.all(|index| index < tasks)
        && dump.tasks.iter().all(|task| task.runtime.is_none_or(|runtime| runtime < dump.runtimes.len()));
    (is_valid && from.number()? == END).then_some(dump)
}

struct Encoder<'a> {
    bytes: Vec<u8>,
    texts: HashMap<&'a str, u64>,
}

impl<'a> Encoder<'a> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn flag(&mut self, flag: bool) {
        self.number(flag.into());
    }

    fn text(&mut self, text: &'a str) {
        let new = self.texts.len() as u64;
        let number = *self.texts.entry(text).or_insert(new);
        self.number(number);
        if number == new {
            self.number(text.len() as u64);
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn list<T>(&mut self, items: &'a [T], mut each: impl FnMut(&mut Self, &'a T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| each(self, item));
    }

    fn option<T>(&mut self, item: Option<T>, each: impl FnOnce(&mut Self, T)) {
        self.flag(item.is_some());
        if let Some(item) = item {
            each(self, item);
        }
    }

    fn place(&mut self, (file, line): &'a (Arc<str>, u32)) {
        self.text(file);
        self.number((*line).into());
    }

    fn kind(&mut self, kind: SharedKind) {
        self.number(KINDS.iter().position(|known| *known == kind).unwrap_or(0) as u64);
    }

    fn target(&mut self, target: WaitTarget) {
        match target {
            WaitTarget::Task(id) => {
                self.number(0);
                self.number(id);
            }
            WaitTarget::Shared { kind, address } => {
                self.number(1);
                self.kind(kind);
                self.number(address);
            }
        }
    }

    fn task(&mut self, task: &'a DumpedTask) {
        self.number(task.id);
        self.number(task.number);
        self.option(task.runtime, |to, runtime| to.number(runtime as u64));
        let (state, tid) = match task.state {
            TaskState::Waiting => (0, 0),
            TaskState::Ready => (1, 0),
            TaskState::Running => (2, 0),
            TaskState::Finished => (3, 0),
            TaskState::Blocking => (4, 0),
            TaskState::BlockOn(tid) => (5, tid),
            TaskState::Queued => (6, 0),
        };
        self.number(state);
        self.number(tid.into());
        self.text(&task.name);
        self.option(task.given_name.as_ref(), |to, name| to.text(name));
        self.option(task.created.as_ref(), Self::place);
        self.number(SOURCES.iter().position(|known| *known == task.source).unwrap_or(0) as u64);
        self.frames(&task.stack);
        self.list(&task.waits, |to, target| to.target(*target));
        self.flag(task.has_no_waker);
        self.option(task.waited, |to, waited| to.number(waited.0));
        self.option(task.thread.as_ref(), |to, thread| {
            to.number(thread.tid.into());
            to.list(&thread.stack, Self::code);
            to.option(thread.polled_for, |to, time| to.number(time.0));
            to.flag(thread.seen_again);
        });
    }

    /// Await stacks are as deep as walks go, which is bounded.
    fn frames(&mut self, frames: &'a [AwaitFrame]) {
        self.list(frames, |to, frame| {
            to.text(&frame.function);
            match &frame.point {
                AwaitPoint::Await(place) => {
                    to.number(0);
                    to.option(place.as_ref(), Self::place);
                }
                AwaitPoint::Leaf => to.number(1),
                AwaitPoint::NotStarted => to.number(2),
                AwaitPoint::Finished => to.number(3),
                AwaitPoint::Lost(why) => {
                    to.number(4);
                    to.text(why);
                }
            }
            to.frames(&frame.children);
        });
    }

    fn code(&mut self, frame: &'a Frame) {
        self.text(&frame.func);
        self.option(frame.spec.as_ref(), |to, spec| to.text(spec));
        self.text(&frame.file);
        self.number(frame.line as u64);
        self.flag(frame.foreign);
        self.flag(frame.inlined);
        self.number(frame.address);
        self.text(&frame.module);
        self.text(&frame.krate);
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    texts: Vec<Arc<str>>,
}

impl Decoder<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let number = usize::try_from(self.number()?).ok()?;
        if number == self.texts.len() {
            let length = usize::try_from(self.number()?).ok()?;
            let (text, rest) = self.bytes.split_at_checked(length)?;
            self.bytes = rest;
            self.texts.push(String::from_utf8_lossy(text).into());
        }
        self.texts.get(number).cloned()
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // Each item has a byte at least.
        if count > self.bytes.len() as u64 {
            return None;
        }
        (0..count).map(|_| each(self)).collect()
    }

    fn option<T>(&mut self, each: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.flag()? {
            true => each(self).map(Some),
            false => Some(None),
        }
    }

    fn place(&mut self) -> Option<(Arc<str>, u32)> {
        Some((self.text()?, self.number()? as u32))
    }

    fn kind(&mut self) -> Option<SharedKind> {
        KINDS.get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn target(&mut self) -> Option<WaitTarget> {
        match self.number()? {
            0 => Some(WaitTarget::Task(self.number()?)),
            1 => Some(WaitTarget::Shared { kind: self.kind()?, address: self.number()? }),
            _ => None,
        }
    }

    fn task(&mut self) -> Option<DumpedTask> {
        Some(DumpedTask {
            id: self.number()?,
            number: self.number()?,
            runtime: self.option(|from| Some(from.number()? as usize))?,
            state: match (self.number()?, self.number()?) {
                (0, _) => TaskState::Waiting,
                (1, _) => TaskState::Ready,
                (2, _) => TaskState::Running,
                (3, _) => TaskState::Finished,
                (4, _) => TaskState::Blocking,
                (5, tid) => TaskState::BlockOn(tid as u32),
                (6, _) => TaskState::Queued,
                _ => return None,
            },
            name: self.text()?,
            given_name: self.option(Self::text)?,
            created: self.option(Self::place)?,
            source: *SOURCES.get(usize::try_from(self.number()?).ok()?)?,
            stack: self.frames(0)?,
            waits: self.list(Self::target)?,
            has_no_waker: self.flag()?,
            waited: self.option(|from| Some(Nanos(from.number()?)))?,
            unpolled: None,
            fires_at: None,
            header: None,
            thread: self.option(|from| {
                Some(PollingThread {
                    tid: from.number()? as u32,
                    stack: from.list(Self::code)?,
                    polled_for: from.option(|from| Some(Nanos(from.number()?)))?,
                    seen_again: from.flag()?,
                })
            })?,
        })
    }

    fn frames(&mut self, depth: u32) -> Option<Vec<AwaitFrame>> {
        if depth > DEEPEST {
            return None;
        }
        self.list(|from| {
            let function = from.text()?;
            let point = match from.number()? {
                0 => AwaitPoint::Await(from.option(Self::place)?),
                1 => AwaitPoint::Leaf,
                2 => AwaitPoint::NotStarted,
                3 => AwaitPoint::Finished,
                4 => AwaitPoint::Lost(reason(&from.text()?)),
                _ => return None,
            };
            Some(AwaitFrame { function, point, children: from.frames(depth + 1)?, is_race: false })
        })
    }

    fn code(&mut self) -> Option<Frame> {
        Some(Frame {
            func: self.text()?,
            spec: self.option(Self::text)?,
            file: self.text()?,
            line: self.number()? as i64,
            foreign: self.flag()?,
            inlined: self.flag()?,
            allocates_for_caller: None,
            address: self.number()?,
            module: self.text()?,
            krate: self.text()?,
        })
    }
}

/// A reason why a chain ends, for ever. There are few.
fn reason(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(known) = known.get(text) {
        return known;
    }
    if known.len() >= MOST_REASONS {
        return "it cannot be followed";
    }
    let new: &'static str = Box::leak(text.into());
    known.insert(new);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump() -> TaskDump {
        let place: (Arc<str>, u32) = ("main.rs".into(), 42);
        let leaf = |point| AwaitFrame {
            function: "tokio::Sleep".into(),
            point,
            children: Vec::new(),
            is_race: false,
        };
        let points = [
            AwaitPoint::Leaf,
            AwaitPoint::NotStarted,
            AwaitPoint::Finished,
            AwaitPoint::Lost("nested too deep"),
            AwaitPoint::Await(None),
        ];
        let stack = AwaitFrame {
            function: "app::serve".into(),
            point: AwaitPoint::Await(Some(place.clone())),
            children: points.into_iter().map(leaf).collect(),
            is_race: false,
        };
        let shared = WaitTarget::Shared { kind: SharedKind::Semaphore, address: u64::MAX };
        let waits = [WaitTarget::Task(7), shared];
        let thread = PollingThread {
            tid: 77,
            stack: vec![Frame { line: -1, ..Frame::unknown(9) }],
            polled_for: Some(Nanos(5)),
            seen_again: true,
        };
        let task = DumpedTask {
            number: 9,
            id: 1 << 40,
            runtime: Some(0),
            state: TaskState::BlockOn(12),
            name: "app::serve".into(),
            given_name: Some("serve".into()),
            created: Some(place.clone()),
            source: AwaitSource::RootName,
            stack: vec![stack],
            waits: waits.to_vec(),
            has_no_waker: true,
            waited: Some(Nanos(1)),
            unpolled: None,
            fires_at: None,
            header: None,
            thread: Some(thread),
        };
        let holder = Holder {
            task: 1,
            line: Some(place),
            is_described: true,
            is_certain: false,
            permits: 1,
            is_shared: true,
        };
        let lock = Lock {
            kind: SharedKind::Barrier,
            address: 4096,
            holders: vec![holder],
            waiters: vec![0],
            arrived: Some((2, 3)),
            ends: Some(1),
        };
        TaskDump {
            pid: 7,
            program: "app".to_owned(),
            runtimes: vec![AsyncRuntime { name: "tokio".to_owned() }],
            tasks: vec![task.clone(), DumpedTask { runtime: None, thread: None, ..task }],
            pools: vec![BlockingPool { busy: Some(512), queued: 30, is_exhausted: true }],
            locks: vec![lock],
            deadlocks: vec![Deadlock { tasks: vec![0, 1], via: vec![shared], is_certain: true }],
            read_at: None,
            pause: Nanos(3),
            remarks: vec!["a remark".to_owned()],
        }
    }

    #[test]
    fn what_is_sent_is_read() {
        assert_eq!(decode(&encode(&dump())), Some(dump()));
        assert_eq!(decode(&encode(&TaskDump::default())), Some(TaskDump::default()));
    }

    #[test]
    fn bytes_that_are_cut_or_wrong_are_no_dump_and_no_panic() {
        let bytes = encode(&dump());
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                drop(decode(&wrong));
            }
        }
        // An index without a task.
        let mut wrong = dump();
        wrong.deadlocks[0].tasks = vec![2];
        assert_eq!(decode(&encode(&wrong)), None);
    }
}
