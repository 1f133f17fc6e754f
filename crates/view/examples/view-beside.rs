//! Writes the pages with heaps and tasks that the browser tests open, and the answers of `heap show --json` to compare with.
//! `view-beside FOLDER`

use stackglass_heap_report::{HeapAnswers, reports};
use stackglass_profile::Recording;
use stackglass_profile::heap_graph::{HeapGraph, NodeKind, UNREACHABLE};
use stackglass_view::{Heap, Packed, Page};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

#[allow(dead_code)]
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
    let packed = Packed::with(Recording::default(), "server.heapsnapshot", Some(heap));
    Page::new(&packed).write_to(&mut File::create(folder.join("view-heap.html"))?)?;
    reports::write_show_json(&answers, &mut File::create(folder.join("view-heap.json"))?)?;
    Ok(())
}

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
