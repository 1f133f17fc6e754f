//! A reader that was written by FORMAT.md alone, in another language, reads the same: the layout is
//! what the page says, and the page says enough.

use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use stackglass_files::{Completeness, GlassWriter, read};
use stackglass_profile::{AllocationSampling, AllocationSlice, End, LocationId, Recording};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording in the form in which the other reader prints it.
fn expected(recording: &Recording, completeness: &Completeness) -> Value {
    let info = &recording.info;
    let end = match info.end {
        None => [0, 0],
        Some(End::Exit(status)) => [1, status],
        Some(End::Signal(signal)) => [2, signal],
        Some(End::Running) => [3, 0],
    };
    let locations = 0..recording.stacks.locations().len() as u32;
    let names = locations.filter_map(|id| {
        let frames = recording.symbols.frames_of(LocationId(id)).map(|f| {
            let place = (&*f.file, f.line);
            let flags = (f.foreign, f.inlined, f.allocates_for_caller);
            json!([
                *f.func,
                f.spec.as_deref(),
                place.0,
                place.1,
                flags.0,
                flags.1,
                flags.2,
                *f.module,
                *f.krate
            ])
        });
        let frames: Vec<Value> = frames.collect();
        (!frames.is_empty()).then(|| json!([id, frames]))
    });
    let paths = recording.symbols.short_paths().into_iter();
    let paths: serde_json::Map<String, Value> =
        paths.map(|(file, short)| (file.to_string(), json!([*short.prefix, *short.rest]))).collect();
    json!({
        "state": match completeness {
            Completeness::Complete(_) => "complete",
            Completeness::Incomplete { .. } => "incomplete",
            Completeness::Damaged { .. } => "damaged",
        },
        "about": {
            "command": info.command, "started": info.started, "start": info.start.0, "wall": info.wall.0,
            "delay": info.delay.0, "capacity": info.capacity, "full": info.full, "end": end,
            "kernel_cpu": info.kernel_cpu.map(|n| n.0), "own_cpu": info.own_cpu.0,
            "writer": info.writer, "machine": info.machine, "remarks": info.remarks,
        },
        "processes": recording.processes.iter().map(|p| {
            let counters: Vec<_> = p.counters.iter().collect();
            json!([p.pid, p.parent, *p.exe, p.start.0, p.end.map(|n| n.0), p.forked, p.arguments, counters])
        }).collect::<Vec<_>>(),
        "threads": recording.threads.iter().map(|t| {
            json!([t.process.0, t.tid, *t.name, t.start.0, t.end.map(|n| n.0), t.cpu.0, t.blocked_signal])
        }).collect::<Vec<_>>(),
        "tasks": recording.tasks.iter().map(|t| {
            json!([t.process.0, t.id.0, *t.name, *t.file, t.line, t.waited.0])
        }).collect::<Vec<_>>(),
        "modules": recording.modules.iter().map(|m| json!([*m.path, *m.build_id])).collect::<Vec<_>>(),
        "locations": recording.stacks.locations().iter().map(|l| {
            json!([l.module.map(|m| m.0), l.offset])
        }).collect::<Vec<_>>(),
        "nodes": recording.stacks.nodes().iter().map(|n| json!([n.0.0, n.1.0])).collect::<Vec<_>>(),
        "samples": recording.samples.iter().map(|s| {
            // Waiting is 0 in the file.
            let state = s.state as u8 & 3;
            json!([s.thread.0, s.stack.0, state, s.cut.map(|cut| cut.0), s.task, s.clock.0, s.time.0, s.hits, s.spread.0])
        }).collect::<Vec<_>>(),
        "names": names.collect::<Vec<_>>(),
        "dispatches": dispatches(recording).iter().map(|id| id.0).collect::<Vec<_>>(),
        "allocating": recording.allocations.processes.iter().map(|p| {
            let sampling = match p.sampling {
                AllocationSampling::Every => json!([0, 0]),
                AllocationSampling::Rate(rate) => json!([1, rate.to_bits()]),
                AllocationSampling::Bytes(bytes) => json!([2, bytes]),
                AllocationSampling::ScaledRate(rate) => json!([3, rate.to_bits()]),
                AllocationSampling::Stacks(share) => json!([4, share.to_bits()]),
            };
            let memory: Vec<_> =
                p.memory.iter().map(|m| json!([m.clock.0, m.live_bytes, m.resident_bytes])).collect();
            json!([p.process.0, p.begin.0, p.end.0, sampling, p.peak_at.0, p.lost, p.without_stack, memory])
        }).collect::<Vec<_>>(),
        "allocations": recording.allocations.groups.iter().map(|g| {
            let c = &g.counts;
            json!([
                [g.process.0, g.stack.0, g.thread.0], g.task, g.kind as u8, g.size_class.0, c.count, c.bytes,
                c.freed_count, c.freed_bytes, c.temporary_count, c.peak_count, c.peak_bytes, c.kept_count, c.kept_bytes,
            ])
        }).collect::<Vec<_>>(),
        "slices": slices(recording),
        "types": recording.symbols.allocated_types().iter().map(|(s, name)| json!([s.0, ***name])).collect::<Vec<_>>(),
        "paths": paths,
        "notes": recording.symbols.notes().iter().map(|n| json!([*n.module, n.missing as u8, n.language as u8]))
            .collect::<Vec<_>>(),
    })
}

fn slices(recording: &Recording) -> Value {
    let slices = &recording.allocations.slices;
    let keys = slices.keys().iter();
    let keys =
        keys.map(|k| json!([k.process.0, k.stack.0, k.thread.0, k.task, k.kind as u8, k.size_class.0]));
    let of_slice = |slice: &AllocationSlice| {
        let changes = slice
            .changes
            .iter()
            .map(|c| json!([c.key, c.count, c.bytes, c.freed_count, c.freed_bytes, c.temporary_count]));
        json!([slice.begin.0, slice.end.0, changes.collect::<Vec<_>>()])
    };
    let processes = slices.processes().iter().map(|p| json!([p.process.0, p.begin.0]));
    json!([
        processes.collect::<Vec<_>>(),
        keys.collect::<Vec<_>>(),
        slices.slices().iter().map(of_slice).collect::<Vec<_>>()
    ])
}

/// Random recordings, whole, unfinished, cut and damaged.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut runner = TestRunner::deterministic();
    let mut paths = Vec::new();
    for number in 0..60u64 {
        let mut steps = steps().new_tree(&mut runner).unwrap().current();
        if number % 5 != 0 {
            // Without a thread there are no samples.
            let (exe, arguments, name) = ("x".into(), vec!["x".into()], "t".into());
            steps.insert(0, Step::Process { pid: 1, exe, arguments, start: 0, forked: false });
            steps.insert(1, Step::Thread { process: 0, tid: 1, name, start: 0 });
            steps.insert(2, Step::Module { path: "/lib/x.so".into(), build_id: vec![7; 20] });
        }
        let path = folder.join(format!("{number}.glass"));
        let mut recording = beginning("prog");
        let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
        grow(&mut writer, &mut recording, &steps);
        if number % 4 != 0 {
            end(&mut recording, number);
            writer.finish(&recording).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        // Not in the last 16 bytes, which nobody needs.
        let place = 16 + (number as usize * 7919) % (bytes.len() - 36);
        match number % 4 {
            2 => std::fs::write(&path, &bytes[..place]).unwrap(),
            3 => {
                let mut damaged = bytes;
                damaged[place] ^= 1;
                std::fs::write(&path, &damaged).unwrap();
            }
            _ => {}
        }
        paths.push(path);
    }
    paths
}

#[test]
fn a_reader_made_from_the_description_reads_the_same() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/glass/stranger.py");
    let can = Command::new("python3").args(["-c", "import ctypes; ctypes.CDLL('libzstd.so.1')"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: python3 or libzstd is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path());
    let output = Command::new("python3").arg(script).args(&paths).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()).collect();
    assert_eq!(lines.len(), paths.len());
    let (mut states, mut samples, mut groups) = (Vec::new(), 0, 0);
    for (path, line) in paths.iter().zip(lines) {
        let theirs: Value = serde_json::from_slice(line).unwrap();
        let (recording, completeness) = read(path).unwrap();
        let ours = expected(&recording, &completeness);
        for (part, ours) in ours.as_object().unwrap() {
            if part == "about" && theirs[part].is_null() {
                assert_eq!(recording.info, Default::default(), "cut or damaged before it is told");
                continue;
            }
            assert_eq!(&theirs[part], ours, "{part} of {}: {completeness}\n{said}", path.display());
        }
        samples += recording.samples.len();
        groups += recording.allocations.groups.len();
        states.push(ours["state"].as_str().unwrap().to_owned());
    }
    assert!(samples > 300 && groups > 50, "{samples} {groups}");
    for state in ["complete", "incomplete", "damaged"] {
        assert!(states.iter().filter(|s| *s == state).count() > 9, "{states:?}");
    }
}
