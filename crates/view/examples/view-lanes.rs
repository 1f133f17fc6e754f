//! Writes pages with many lanes, for the browser tests of the tracks: processes whose threads wait in known functions, and 1 000 threads.
//! `view-lanes FOLDER [large]`; `large` adds one of a million samples and 100 000 stack nodes, to measure.

use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, StackId, State, Thread,
    ThreadNumber,
};
use stackglass_view::{Packed, Page};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

const MS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let write = |name: &str, made: Made, title: &str| {
        Page::new(&Packed::new(made.recording, title)).write_to(&mut File::create(folder.join(name))?)
    };
    write("view-lanes.html", waits(), "lanes")?;
    write("view-many.html", many(1000, 50_000, 400), "many")?;
    if std::env::args().nth(2).is_some_and(|word| word == "large") {
        write("view-large.html", many(1000, 1_000_000, 100_000), "large")?;
    }
    Ok(())
}

/// A recording in the making.
#[derive(Default)]
struct Made {
    recording: Recording,
}

impl Made {
    fn new(wall: u64) -> Made {
        let mut made = Made::default();
        made.recording.info.wall = Nanos(wall);
        made.recording.info.delay = Nanos(MS);
        made.recording.info.writer = "stackglass".to_owned();
        made.recording.info.command = vec!["lanes".to_owned()];
        made
    }

    fn process(&mut self, pid: u32, exe: &str) {
        self.recording.processes.push(Process { pid, exe: exe.into(), ..Process::default() });
    }

    /// A thread of the last process.
    fn thread(&mut self, tid: u32, name: &str) -> ThreadNumber {
        self.recording.threads.push(Thread {
            process: ProcessIndex(self.recording.processes.len() as u32 - 1),
            tid,
            name: name.into(),
            start: Nanos(0),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
        ThreadNumber(self.recording.threads.len() as u32)
    }

    fn location(&mut self, name: &str, foreign: bool) -> LocationId {
        let offset = self.recording.symbols.frames().len() as u64;
        let location = self.recording.stacks.intern_location(Location { module: None, offset });
        let frame =
            Frame { func: name.into(), line: 1, file: "src/main.rs".into(), foreign, ..Frame::unknown(0) };
        self.recording.symbols.set(location, [frame]);
        location
    }

    fn stack(&mut self, outermost_first: &[LocationId]) -> StackId {
        let leaf_first: Vec<LocationId> = outermost_first.iter().rev().copied().collect();
        self.recording.stacks.intern(&leaf_first)
    }

    fn sample(&mut self, thread: ThreadNumber, stack: StackId, state: State, clock: u64, time: u64) {
        let (clock, time) = (Nanos(clock), Nanos(time));
        self.recording.samples.push(Sample {
            stack,
            thread,
            task: 0,
            clock,
            state,
            cut: None,
            hits: 1,
            time,
            spread: Nanos(0),
        });
    }
}

/// Four seconds. `server` runs for a second, then waits: `locker` in a futex, `reader` in read, `poller` in `epoll_wait`, `napper` in a
/// timer, `waiter` in wait4. `client` has `busy`, which runs and is ready in turns of 250 ms.
fn waits() -> Made {
    let mut made = Made::new(4000 * MS);
    let main = made.location("main", false);
    let work = made.location("work", false);
    let running = made.stack(&[main, work]);
    made.process(10, "/bin/server");
    let names = [
        ("locker", "syscall"),
        ("reader", "__libc_read"),
        ("poller", "epoll_wait"),
        ("napper", "clock_nanosleep"),
        ("waiter", "wait4"),
    ];
    for (number, (name, function)) in names.into_iter().enumerate() {
        let thread = made.thread(11 + number as u32, name);
        let mut path = vec![main];
        if function == "syscall" {
            path.push(made.location("std::sys::futex::futex_wait", false));
        }
        path.push(made.location(function, true));
        let asleep = made.stack(&path);
        for end in 1..=1000 {
            made.sample(thread, running, State::Awake, end * MS, MS);
        }
        made.sample(thread, asleep, State::Asleep, 4000 * MS, 3000 * MS);
    }
    made.process(20, "/bin/client");
    let busy = made.thread(21, "busy");
    for end in 1..=4000 {
        let state = if (end - 1) / 250 % 2 == 0 { State::Awake } else { State::Waiting };
        made.sample(busy, running, state, end * MS, MS);
    }
    made
}

/// Ten seconds of made-up threads in ten processes, each with its share of the samples, over a tree of this many nodes.
fn many(threads: u32, samples: u64, nodes: usize) -> Made {
    let wall = 10_000 * MS;
    let mut made = Made::new(wall);
    let functions: Vec<LocationId> = (0..nodes.div_ceil(10))
        .map(|number| made.location(&format!("module{}::function{number}", number % 40), number % 3 == 0))
        .collect();
    let wait = made.location("epoll_wait", true);
    let mut random = 1_u64;
    let mut below = move |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    // Stacks of ten frames: each path shares its beginning with others.
    let mut paths: Vec<Vec<LocationId>> = vec![Vec::new()];
    while paths.len() < nodes {
        let mut path = paths[below(paths.len() as u64) as usize].clone();
        if path.len() < 30 {
            path.push(functions[below(functions.len() as u64) as usize]);
            paths.push(path);
        }
    }
    let stacks: Vec<StackId> = paths.iter().map(|path| made.stack(path)).collect();
    let asleep = made.stack(&[functions[0], wait]);
    let each = samples / u64::from(threads);
    for number in 0..threads {
        if number % (threads / 10) == 0 {
            made.process(100_000 + number, &format!("/bin/program{}", number / (threads / 10)));
        }
        let thread = made.thread(100_001 + number, &format!("worker-{number}"));
        let mut clock = below(wall / 20);
        for _ in 0..each {
            clock += below(2 * wall * 9 / 10 / each);
            let time = below(wall / each);
            match below(5) {
                0 => made.sample(thread, asleep, State::Asleep, clock, time),
                1 => made.sample(thread, asleep, State::Waiting, clock, time / 4),
                _ => made.sample(
                    thread,
                    stacks[below(stacks.len() as u64) as usize],
                    State::Awake,
                    clock,
                    time / 4,
                ),
            }
        }
    }
    made
}
