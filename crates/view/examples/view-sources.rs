//! Writes pages with sources and instructions that the browser tests open, and what `annotate --json` says of parts of the recording.
//! `view-sources FOLDER`

use stackglass_profile::recording::Module;
use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread,
    ThreadNumber, TimeRange,
};
use stackglass_report::Annotate;
use stackglass_report::annotate::SourceFile;
use stackglass_report::call_tree::StateFilter;
use stackglass_symbols::Disassembly;
use stackglass_symbols::disassembly::{FunctionCode, Instruction};
use stackglass_view::{Beside, Packed, Page, Sources};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const MAIN: &str = "/home/me/app/src/main.rs";
const SUM: &str = "/home/me/app/src/sum.rs";
const STD: &str = "/rustc/0123/library/core/src/slice/iter.rs";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let recording = recording();
    let write = |name: &str, beside: &Beside<'_>| {
        let packed = Packed::with(recording.clone(), "app", beside);
        Page::new(&packed).write_to(&mut File::create(folder.join(name))?)
    };
    let read = |_: &Recording, file: &str| source(file);
    let code = code();
    let sources = Some(Sources { read: &read });
    write("view-sources.html", &Beside { sources, code: Some(&code), ..Beside::default() })?;
    write("view-sources-none.html", &Beside::default())?;
    let moment = |ms: u64| Some(Nanos(ms * MS));
    for (name, range) in
        [("all", TimeRange::default()), ("part", TimeRange { from: moment(333), to: moment(1777) })]
    {
        for states in [StateFilter::Awake, StateFilter::Asleep, StateFilter::All] {
            let mut part = recording.clone();
            part.keep(range);
            let mut json = File::create(folder.join(format!("view-sources-{name}-{}.json", states.word())))?;
            Annotate::new().states(states).write_json(&part, &mut json)?;
        }
    }
    Ok(())
}

/// The texts of two files; the standard library is not here.
fn source(file: &str) -> SourceFile {
    let text = match file {
        MAIN => (1..=40).map(|line| format!("    main line {line}; // {line}\n")).collect(),
        SUM => "/// Adds </script><b>up</b>.\npub fn sum(all: &[u64]) -> u64 {\n\tlet mut sum = 0; /* not\n    yet */\n    for value in all {\n        sum += \
                value / 3;\n    }\n    println!(\"{sum} is \\\"it\\\"\");\n    sum\n}\n"
            .to_owned(),
        _ => return SourceFile::default(),
    };
    let remark = (file == MAIN).then(|| "changed since the recording: lines may have moved".to_owned());
    SourceFile { found: None, text: Some(text), remark }
}

/// Frames of a location, innermost first: function, file, line, whether it is inlined.
type Frames = &'static [(&'static str, &'static str, i64, bool)];

/// Locations of the program, by a quarter of their address.
const LOCATIONS: [Frames; 8] = [
    &[("app::main", MAIN, 3, false)],
    &[("app::run", MAIN, 10, false)],
    &[("app::run", MAIN, 12, false)],
    &[("core::slice::iter::next", STD, 100, true), ("app::sum", SUM, 5, false)],
    &[("app::sum", SUM, 6, false)],
    &[("app::sum", SUM, 6, false)],
    &[("app::helper", SUM, 99, true), ("app::sum", SUM, 9, false)],
    &[("memcpy", "", 0, false)],
];

/// Two seconds of two threads in pseudo-random stacks: recursion, inlined calls, and time that is spread.
fn recording() -> Recording {
    let mut recording = Recording::default();
    recording.info.wall = Nanos(2000 * MS);
    recording.info.delay = Nanos(MS);
    recording.info.command = vec!["app".to_owned()];
    recording.processes.push(Process { pid: 7, exe: "/bin/app".into(), ..Process::default() });
    for (tid, name) in [(7, "one"), (8, "two")] {
        let (process, start, cpu) = (ProcessIndex(0), Nanos(0), Nanos(0));
        recording.threads.push(Thread {
            process,
            tid,
            name: name.into(),
            start,
            end: None,
            cpu,
            blocked_signal: false,
        });
    }
    let module = Some(recording.intern_module(Module { path: "/bin/app".into(), build_id: [].into() }));
    let locations: Vec<LocationId> = (0_u64..)
        .zip(LOCATIONS)
        .map(|(number, frames)| {
            let location = recording.stacks.intern_location(Location { module, offset: 0x1000 + 4 * number });
            let frames = frames.iter().map(|(func, file, line, inlined)| {
                let is_foreign = file.is_empty();
                let krate = if is_foreign { "" } else { func.split("::").next().unwrap_or("") };
                Frame {
                    func: (*func).into(),
                    file: (*file).into(),
                    line: if is_foreign { -1 } else { *line },
                    inlined: *inlined,
                    foreign: is_foreign,
                    krate: krate.into(),
                    module: if is_foreign { "libc.so.6" } else { "app" }.into(),
                    ..Frame::unknown(0)
                }
            });
            recording.symbols.set(location, frames);
            location
        })
        .collect();
    let mut seed = 11_u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut clocks = [0_u64; 2];
    loop {
        let thread = below(2) as usize;
        let (time, spread) = (1 + below(3 * MS), if below(3) == 0 { below(2 * MS) } else { 0 });
        clocks[thread] += time + spread;
        if clocks[thread] > 2000 * MS {
            break;
        }
        let mut leaf_first = vec![locations[3 + below(5) as usize]];
        leaf_first.extend((0..below(3)).map(|_| locations[1 + below(2) as usize]));
        leaf_first.push(locations[0]);
        let state = [State::Awake, State::Awake, State::Asleep, State::Waiting][below(4) as usize];
        let sample = Sample {
            stack: recording.stacks.intern(&leaf_first),
            thread: ThreadNumber(thread as u32 + 1),
            task: 0,
            clock: Nanos(clocks[thread]),
            state,
            cut: None,
            hits: 1 + below(3) as u32,
            time: Nanos(time),
            spread: Nanos(spread),
        };
        recording.samples.push(sample);
    }
    recording
}

/// The code of `app::sum`, an instruction each four bytes.
fn code() -> Disassembly {
    let text = ["mov     rax, [rdi]", "xor     edx, edx", "div     rcx", "add     rbx, rax"];
    let instruction = |(number, text): (usize, &str)| {
        let (func, file, line, _) = LOCATIONS[3 + number][0];
        let [file, function] = [file, func].map(Arc::from);
        Instruction { address: 0x100c + 4 * number as u64, text: text.to_owned(), file, line, function }
    };
    let function = FunctionCode {
        module: stackglass_profile::ModuleIndex(0),
        addresses: 0x100c..0x101c,
        instructions: text.into_iter().enumerate().map(instruction).collect(),
        leaves: (3..7).map(LocationId).collect(),
    };
    Disassembly { functions: vec![function], left: Vec::new() }
}
