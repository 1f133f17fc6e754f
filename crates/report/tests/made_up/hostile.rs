//! A recording in which every name is hostile. The tests of the command use it as well.

use super::Maker;
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{
    AllocatingProcess, AllocationGroup, AllocationKind, AllocationSampling, Allocations, Cut, Frame,
    LocationId, MemoryPoint, Nanos, ProcessIndex, Recording, ShortPath, SizeClass, State, Task, TaskId,
};

/// One of each class of characters that act: controls (C0, delete, C1), direction marks, embeddings and overrides,
/// isolates, separators, what has no width, fillers, selectors, annotations, tags, no characters.
pub const ACTING: [char; 22] = [
    '\u{7}',
    '\u{8}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{61c}',
    '\u{200e}',
    '\u{200f}',
    '\u{202a}',
    '\u{202e}',
    '\u{2066}',
    '\u{2069}',
    '\u{2028}',
    '\u{2029}',
    '\u{200b}',
    '\u{feff}',
    '\u{ad}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{fff9}',
    '\u{e0041}',
];

/// A recording in which everything has a name that ends with these characters and `[2J`.
pub fn hostile(characters: &str) -> Recording {
    let evil = |text: &str| format!("{text}{characters}[2J");
    let mut maker = Maker::new(&[&evil("/bin/app"), &evil("argument")]);
    let mut threads = Vec::new();
    for exe in ["/bin/app", "/bin/other"] {
        let process = maker.process(&evil(exe), &[&evil("app"), &evil("argument")]);
        threads.extend(["worker", "sleeper"].map(|name| maker.thread(process, &evil(name))));
    }
    let main = maker.stack("app! app::main src/main.rs:9");
    let leaf = maker.stack("app! app::main src/main.rs:9 > app! app::work src/work.rs:3 > c libx.so! ?");
    let nap = maker.stack("app! app::main src/main.rs:9 > c libc.so.6! nanosleep");
    for thread in &threads {
        maker.sample(*thread, main, State::Awake, 100);
        maker.cut_sample(*thread, leaf, State::Awake, 200, Some(Cut(2)));
        maker.sample(*thread, nap, State::Asleep, 300);
    }
    let recording = &mut maker.recording;
    for (index, _) in recording.stacks.locations().to_vec().iter().enumerate() {
        let id = LocationId(index as u32);
        let frames: Vec<Frame> = recording.symbols.frames_of(id).cloned().collect();
        let renamed = |frame: Frame| Frame {
            func: if frame.func.is_empty() { frame.func.clone() } else { evil(&frame.func).into() },
            spec: Some(evil(&frame.func).into()),
            file: if frame.file.is_empty() { frame.file.clone() } else { evil(&frame.file).into() },
            module: evil(&frame.module).into(),
            krate: evil("app").into(),
            ..frame
        };
        recording.symbols.set(id, frames.into_iter().map(renamed).collect::<Vec<_>>());
    }
    let short = ShortPath { prefix: evil("@app").into(), rest: evil("work.rs").into() };
    recording.symbols.set_short_path(evil("src/work.rs").into(), short);
    for module in &mut recording.modules {
        module.path = evil(&module.path).into();
    }
    let module = recording.modules[0].path.clone();
    recording.symbols.note(ModuleNote { module, missing: Missing::File, language: Language::Unknown });
    for id in [1, 2] {
        recording.tasks.push(Task {
            id: TaskId(id),
            process: ProcessIndex(0),
            name: evil("task").into(),
            file: evil("src/task.rs").into(),
            line: 7,
            waited: Nanos(5),
        });
        recording.samples[id as usize].task = id;
    }
    let groups = [(leaf, Some("Vec")), (main, None)].map(|(stack, name)| {
        if let Some(name) = name {
            recording.symbols.set_allocated_type(stack, evil(name).into());
        }
        AllocationGroup {
            stack,
            thread: threads[0],
            process: ProcessIndex(0),
            task: 0,
            kind: AllocationKind::Block,
            size_class: SizeClass::from_size(24),
            counts: super::allocating::counts(10, 24, 4, 2, 5),
        }
    });
    recording.allocations = Allocations {
        processes: vec![AllocatingProcess {
            process: ProcessIndex(0),
            begin: Nanos(0),
            end: Nanos(9),
            sampling: AllocationSampling::Every,
            peak_at: Nanos(5),
            lost: 1,
            without_stack: 1,
            memory: vec![MemoryPoint { clock: Nanos(5), live_bytes: 120, resident_bytes: 999 }],
        }],
        groups: groups.into(),
        ..Allocations::default()
    };
    recording.threads[0].blocked_signal = true;
    recording.info.remarks.push(evil("remark"));
    recording.info.machine = evil("machine");
    maker.recording
}
