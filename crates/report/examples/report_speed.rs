//! What reports of many words take, by the number of words and of distinct stacks: one line of JSON.
//!
//! ```text
//! report_speed data WORDS STACKS [--shown]        a word buffer with its dictionary
//! report_speed entries WORDS STACKS               a recording with an entry for each sample
//! report_speed longer WORDS STACKS                a recording with an entry for each stack, longer ones
//! ```
//!
//! Reports have every line, or with `--shown` those that were seen in 0.5 % of the samples. The first
//! report of the process tells its wall time, its CPU time on all threads (to the hundredth of a
//! second) and the memory the process had then; of the reports of recordings, which are made again
//! and again, the fastest is told too. `bench` runs this in fresh processes.

use stackglass_profile::{
    Data, Dictionary, Frame, Location, Module, Nanos, Recording, Sample, State, Thread, ThreadNumber,
};
use stackglass_report::{Format, Report, Source};
use std::io::Write;
use std::time::Instant;

/// Distinct places in the code.
const PLACES: u64 = 20_000;
/// Frames of a stack.
const DEPTH: u64 = 34;
/// Threads that take turns.
const THREADS: u64 = 8;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let numbers = |words: &str, stacks: &str| Some((words.parse::<u64>().ok()?, stacks.parse::<u64>().ok()?));
    let asked = match arguments[..] {
        [what, words, stacks] => numbers(words, stacks).map(|numbers| (what, numbers, false)),
        [what, words, stacks, "--shown"] => numbers(words, stacks).map(|numbers| (what, numbers, true)),
        _ => None,
    };
    let Some((what, (words, stacks), shown)) = asked else {
        eprintln!("usage: report_speed data|entries|longer WORDS STACKS [--shown]");
        return 2.into();
    };
    let samples = (words / (DEPTH + 6)).max(1);
    let (data, dictionary, recording);
    let source = match what {
        "data" => {
            (data, dictionary) = (words_of(samples, stacks), names());
            Source::Data(&data, &dictionary)
        }
        _ => {
            recording = recording_of(samples, stacks, what == "longer");
            Source::Recording(&recording)
        }
    };
    let least = if shown { samples / 200 } else { 0 };
    let time = |format| {
        let mut out = Counted(0);
        let begin = (Instant::now(), cpu());
        let report = Report::new().format(format).mincount(least);
        report.write(source, &mut out).expect("the samples have metadata");
        (begin.0.elapsed().as_nanos(), cpu() - begin.1, out.0)
    };
    let (tree_wall, tree_cpu, bytes) = time(Format::Tree);
    let peak = peak();
    let again = if what == "data" { 0 } else { 15 };
    let fastest = (0..again).map(|_| time(Format::Tree).0).min().unwrap_or(tree_wall);
    let (flat_wall, ..) = time(Format::Flat);
    println!(
        "{{\"tree_wall_ns\":{tree_wall},\"tree_cpu_ns\":{tree_cpu},\"tree_fastest_ns\":{fastest},\
         \"flat_wall_ns\":{flat_wall},\"bytes\":{bytes},\"peak_kib\":{peak}}}"
    );
    0.into()
}

/// Where a report goes: nobody reads it, but its bytes are counted.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A place in one of a few hundred files; some have an inlined frame.
fn frames(place: u64) -> Vec<Frame> {
    let frame = |inlined: bool| Frame {
        func: format!("library{}::module::function_{}", place % 40, place / 3).into(),
        file: format!("/src/library{}/file_{}.rs", place % 40, place % 300).into(),
        line: (place % 900) as i64 + if inlined { 1000 } else { 1 },
        foreign: false,
        inlined,
        ..Frame::unknown(address(place))
    };
    if place.is_multiple_of(4) { vec![frame(true), frame(false)] } else { vec![frame(false)] }
}

fn address(place: u64) -> u64 {
    0x5555_0000_0000 + place * 16
}

fn names() -> Dictionary {
    let mut dictionary = Dictionary::new();
    for place in 0..PLACES {
        dictionary.set(address(place), frames(place));
    }
    dictionary
}

/// Places of a stack, root first. Outer frames are shared by many stacks, inner ones by few.
fn stack(number: u64) -> impl DoubleEndedIterator<Item = u64> {
    let mut places = [0; DEPTH as usize];
    let mut rest = number;
    for (level, place) in (0..DEPTH).zip(&mut places) {
        *place = (rest % (level / 2 + 1) + level * 577) % PLACES;
        rest /= if level > DEPTH / 2 { 2 } else { 1 };
    }
    places[DEPTH as usize - 2] = number / PLACES;
    places[DEPTH as usize - 1] = number % PLACES;
    places.into_iter()
}

/// Numbers of stack and thread, and the clock: each stack once, then a repeatable jumble.
fn jumble(samples: u64, stacks: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut state = 1_u64;
    (1..=samples).map(move |clock| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = if clock <= stacks { clock - 1 } else { (state >> 33) % stacks };
        (number, (state >> 20) % THREADS + 1, clock)
    })
}

fn words_of(samples: u64, stacks: u64) -> Data {
    let mut words = Vec::with_capacity((samples * (DEPTH + 6)) as usize);
    for (number, thread, clock) in jumble(samples, stacks) {
        words.extend(stack(number).rev().map(address));
        words.extend([thread, thread + 100, clock, 1, 0, 0]);
    }
    Data::new(words)
}

fn recording_of(samples: u64, stacks: u64, longer: bool) -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1);
    let thread = |tid| Thread {
        process: 0.into(),
        tid,
        name: "busy".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    };
    recording.threads = (1..=THREADS as u32).map(thread).collect();
    let module = Some(recording.intern_module(Module { path: "made-up".into(), build_id: [].into() }));
    let places: Vec<_> = (0..PLACES)
        .map(|place| recording.stacks.intern_location(Location { module, offset: address(place) }))
        .collect();
    for (place, location) in (0..PLACES).zip(&places) {
        recording.symbols.set(*location, frames(place));
    }
    let ids: Vec<_> = (0..stacks)
        .map(|number| {
            let leaf_first: Vec<_> = stack(number).rev().map(|place| places[place as usize]).collect();
            recording.stacks.intern(&leaf_first)
        })
        .collect();
    let (entries, time) = if longer { (stacks, (samples / stacks).max(1)) } else { (samples, 1) };
    for (number, thread, clock) in jumble(entries, stacks) {
        recording.push(Sample {
            stack: ids[number as usize],
            thread: ThreadNumber(thread as u32),
            task: 0,
            clock: Nanos(clock),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(time),
        });
    }
    recording
}

/// CPU time of all threads so far in nanoseconds, to the hundredth of a second.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() * 10_000_000
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
