//! Writes the pages with heaps and tasks that the browser tests open, and the answers of `heap show --json` to compare with.
//! `view-beside FOLDER`

use stackglass_heap_report::{HeapAnswers, reports};
use stackglass_profile::heap_graph::{HeapGraph, NodeKind, UNREACHABLE};
use stackglass_profile::{
    AwaitKind, AwaitLocation, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State,
    Task, TaskId, Thread, ThreadNumber,
};
use stackglass_view::{Beside, Heap, Packed, Page, TaskDump, Tasks};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../../heap_report/tests/maker.rs"]
mod maker;
use maker::{Maker, ROOT};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let graph = server();
    let answers = HeapAnswers::new(&graph);
    let heap = Heap { name: "server.heapsnapshot", answers: &answers };
    let packed = Packed::with(
        Recording::default(),
        "server.heapsnapshot",
        &Beside { heap: Some(heap), ..Beside::default() },
    );
    Page::new(&packed).write_to(&mut File::create(folder.join("view-heap.html"))?)?;
    let dump = TaskDump::read(include_str!("../tests/tasks.json"))?;
    let beside = Beside { tasks: Some(Tasks { name: "t.json", dump: &dump }), ..Beside::default() };
    let packed = Packed::with(shop(), "shop", &beside);
    Page::new(&packed).write_to(&mut File::create(folder.join("view-tasks.html"))?)?;
    let packed = Packed::with(Recording::default(), "t.json", &beside);
    Page::new(&packed).write_to(&mut File::create(folder.join("view-tasks-alone.html"))?)?;
    reports::write_show_json(&answers, &mut File::create(folder.join("view-heap.json"))?)?;
    Ok(())
}

/// Four seconds by wall time. Two tasks `price` wait for a lock in the first two seconds, one of them is polled in the third, and
/// `fetch` sleeps in the last one.
fn shop() -> Recording {
    let mut recording = Recording::default();
    recording.info.wall = Nanos(4000 * MS);
    recording.info.delay = Nanos(MS);
    recording.processes.push(Process { pid: 7, exe: "/bin/shop".into(), ..Process::default() });
    recording.threads.push(Thread {
        process: ProcessIndex(0),
        tid: 7,
        name: "shop".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    let main = "/home/me/shop/src/main.rs";
    let stacks: [&[(&str, &str, u32)]; 3] = [
        &[("shop::price", main, 10), ("tokio::sync::batch_semaphore::Acquire", "", 0)],
        &[("shop::price", main, 14), ("[ready]", "", 0)],
        &[("shop::fetch", main, 23), ("tokio::time::sleep::Sleep", "", 0)],
    ];
    let parts = [(0, 5, 0..2000), (0, 6, 0..2000), (1, 5, 2000..3000), (2, 3, 3000..4000)];
    for (stack, task, ends) in parts {
        let frames = stacks[stack].iter().rev();
        let leaf_first: Vec<LocationId> = frames
            .map(|(function, file, line)| {
                let kind = if *function == "[ready]" { AwaitKind::Polled } else { AwaitKind::Waiting };
                let frame =
                    AwaitLocation { kind, function: (*function).into(), file: (*file).into(), line: *line };
                let module = Some(recording.intern_module(frame.module()));
                recording.stacks.intern_location(Location { module, offset: u64::from(*line) })
            })
            .collect();
        let stack = recording.stacks.intern(&leaf_first);
        for end in ends {
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(1),
                task,
                clock: Nanos((end + 1) * MS),
                state: State::Task,
                cut: None,
                hits: 1,
                time: Nanos(MS),
                spread: Nanos(0),
            });
        }
    }
    for (id, name) in [(3, "fetch"), (5, "price"), (6, "price")] {
        let (id, process) = (TaskId(id), ProcessIndex(0));
        recording.tasks.push(Task {
            id,
            process,
            name: name.into(),
            file: "src/main.rs".into(),
            line: 48,
            waited: Nanos(0),
        });
    }
    recording.name_awaits();
    recording
}

const MS: u64 = 1_000_000;

/// 1000 sessions in a table that a static holds, with a name and events each. 300 requests are forgotten, each with its body. Names are
/// hostile.
fn server() -> HeapGraph {
    let mut heap = Maker::new();
    let statics = heap.root(ROOT, "(static data)");
    let server = heap.root(statics, "server");
    let sessions = heap.root(server, "server::SESSIONS");
    let table = heap.object(sessions, "map", "HashMap<u64, Session> table", 48_000);
    for index in 0..1000 {
        let name = heap.node(NodeKind::String, "String", 16);
        heap.field(table, name, &format!("[{index}].value.name"));
        let events = heap.node(NodeKind::Array, "[Event]", 256);
        heap.field(table, events, &format!("[{index}].value.events"));
    }
    let stacks = heap.root(ROOT, "(thread stacks)");
    let thread = heap.root(stacks, "thread 7 server");
    let frame = heap.root(thread, "server::run (main.rs:9)");
    let mut job = heap.object(frame, "jobs", "Job<</script><img src=x onerror=alert(1)>>", 64);
    for _ in 1..100 {
        job = heap.object(job, "next", "Job<</script><img src=x onerror=alert(1)>>", 64);
    }
    let unreachable = heap.root(ROOT, UNREACHABLE);
    for index in 0..300 {
        let request = heap.node(NodeKind::Object, "Request", 100);
        heap.element(unreachable, request, index);
        heap.allocated_by(request, "server::accept", 71);
        let body = heap.object(request, "body", "[u8]", 400);
        heap.allocated_by(body, "server::read_body", 90);
    }
    heap.graph()
}
