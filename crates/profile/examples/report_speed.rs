//! How much processor time reports of many words take, by the number of distinct stacks and of samples.
//!
//! `cargo run --release -p stackglass-profile --example report_speed`

use stackglass_profile::report::Format;
use stackglass_profile::{Data, Dictionary, Frame, Report, Source};

/// Distinct places in the code.
const PLACES: u64 = 20_000;
/// Frames of a stack.
const DEPTH: u64 = 34;

fn main() {
    let dictionary = dictionary();
    println!("{:>12} {:>9} {:>8} {:>10} {:>10} {:>10}", "words", "stacks", "samples", "tree", "flat", "peak");
    for (words, stacks) in [
        (10_000, 100),
        (100_000, 1_000),
        (1_000_000, 1_000),
        (10_000_000, 1_000),
        (10_000_000, 10_000),
        (10_000_000, 100_000),
        (100_000_000, 1_000),
    ] {
        let samples = words / (DEPTH + 6);
        let data = data(samples, stacks);
        let time = |format| {
            let begin = cpu_seconds();
            let mut out = Vec::new();
            let report = Report::new().format(format).mincount(samples / 200);
            report.write(Source::Data(&data, &dictionary), &mut out).expect("data has metadata");
            cpu_seconds() - begin
        };
        let (tree, flat) = (time(Format::Tree), time(Format::Flat));
        let peak = peak_megabytes();
        println!("{words:>12} {stacks:>9} {samples:>8} {tree:>8.3} s {flat:>8.3} s {peak:>7} MB");
    }
}

/// Places in a few hundred files; some with an inlined frame.
fn dictionary() -> Dictionary {
    let mut dictionary = Dictionary::new();
    for place in 0..PLACES {
        let frame = |inlined: bool| Frame {
            func: format!("library{}::module::function_{}", place % 40, place / 3).into(),
            file: format!("/src/library{}/file_{}.rs", place % 40, place % 300).into(),
            line: (place % 900) as i64 + if inlined { 1000 } else { 1 },
            foreign: false,
            inlined,
            ..Frame::unknown(address(place))
        };
        let frames = if place % 4 == 0 { vec![frame(true), frame(false)] } else { vec![frame(false)] };
        dictionary.set(address(place), frames);
    }
    dictionary
}

fn address(place: u64) -> u64 {
    0x5555_0000_0000 + place * 16
}

/// Samples of `stacks` distinct stacks, in a repeatable jumble.
fn data(samples: u64, stacks: u64) -> Data {
    let mut words = Vec::with_capacity((samples * (DEPTH + 6)) as usize);
    let mut state = 1_u64;
    for clock in 1..=samples {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut stack = (state >> 33) % stacks;
        // Outer frames are shared by many stacks, inner ones by few.
        let mut root_first = Vec::with_capacity(DEPTH as usize);
        for level in 0..DEPTH {
            root_first.push(address((stack % (level / 2 + 1) + level * 577) % PLACES));
            stack /= if level > DEPTH / 2 { 2 } else { 1 };
        }
        root_first[DEPTH as usize - 1] = address((state >> 33) % stacks % PLACES);
        root_first[DEPTH as usize - 2] = address((state >> 33) % stacks / PLACES);
        words.extend(root_first.iter().rev());
        words.extend([state % 8 + 1, state % 8 + 100, clock, 1, 0, 0]);
    }
    Data::new(words)
}

/// Processor time used so far, so that a busy machine does not matter.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) * 1e-9
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}
