//! What holds for every profile, however odd.

use crate::made_up;
use proptest::prelude::*;
use stackglass_profile::{Cut, Data, Dictionary, Frame, Nanos, Recording, State, flatten, snapshots};
use stackglass_report::{
    Callers, CallersError, Format, GroupBy, Quirks, Recur, Report, SortedBy, Style, Summary,
};
use unicode_width::UnicodeWidthStr;

/// Frames from which random stacks are made: recursion, inlining, libraries, no names.
const FRAMES: &[&str] = &[
    "demo::main /home/me/demo/src/main.rs:3",
    "demo::a /home/me/demo/src/a.rs:10",
    "demo::a /home/me/demo/src/a.rs:11",
    "demo::b /home/me/demo/src/b.rs:20",
    "+ core::iter::next /rustc/0/library/core/src/iter.rs:5",
    "+ demo::inlined /home/me/demo/src/a.rs:90",
    "std::thread::park /rustc/0/library/std/src/thread.rs:77",
    "alloc::vec::Vec::push /rustc/0/library/alloc/src/vec.rs:2000",
    "c libc.so.6! malloc malloc.c:3300",
    "c libc.so.6! _int_malloc malloc.c:4000",
    "c libc.so.6! start_thread",
    "c libfoo.so! ?",
    "名前::関数 /源/コード.rs:7",
    "std::rt::lang_start /rustc/0/library/std/src/rt.rs:100",
];

/// Thread, stack (indices of frames, outermost first), awake, microseconds, hits, cut.
type Piece = (u32, Vec<usize>, bool, u64, u32, Option<u8>);

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let stack = prop::collection::vec(0..FRAMES.len(), 0..12);
    let piece = (1..5_u32, stack, any::<bool>(), 0..20_000_u64, 0..5_u32, prop::option::of(0..9_u8));
    prop::collection::vec(piece, 0..40)
}

fn recording(pieces: &[Piece]) -> Recording {
    let mut maker = made_up::Maker::new(&["demo"]);
    for n in 0..2 {
        let process = maker.process(["/bin/demo", "/bin/other"][n], &["demo"]);
        maker.thread(process, &format!("thread-{n}"));
        maker.thread(process, "same");
    }
    for (thread, frames, awake, micros, hits, cut) in pieces {
        let text: Vec<&str> = frames.iter().map(|index| FRAMES[*index].trim_start_matches("+ ")).collect();
        let text = match frames.split_first() {
            // The first frame cannot be inlined into another.
            Some((_, rest)) => {
                text[..1].iter().copied().chain(rest.iter().map(|index| FRAMES[*index])).collect()
            }
            None => text,
        };
        let stack = maker.stack(&text.join(" > "));
        let state = if *awake { State::Awake } else { State::Asleep };
        maker.raw_sample((*thread).into(), stack, state, Nanos(micros * 1000), *hits, cut.map(Cut));
    }
    maker.recording
}

fn text_of(report: &Report, data: &Data, dictionary: &Dictionary) -> String {
    let mut out = Vec::new();
    report.write((data, dictionary), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn reports() -> impl Strategy<Value = Report> {
    let shape = (
        prop::sample::select(SortedBy::ALL),
        prop::sample::select(GroupBy::ALL),
        prop::sample::select(Recur::ALL),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let limits = (-1..20_i64, 0..4_u64, 0.0..3.0_f64, 1..130_usize, any::<bool>());
    (shape, limits).prop_map(
        |((sorted, group, recur, flat, c, combine), (depth, count, noise, cols, quirks))| {
            let report = Report::new().sorted_by(sorted).group_by(group).c(c).combine(combine).cols(cols);
            let report = report.maxdepth(depth).mincount(count).noisefloor(noise);
            let report = if flat { report.format(Format::Flat) } else { report.recur(recur) };
            if quirks { report.quirks(Quirks::ALL) } else { report }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn snapshots_sum_to_the_time_of_each_thread(pieces in pieces()) {
        let recording = recording(&pieces);
        let counts = snapshots(&recording);
        let delay = recording.info.delay.0;
        let all: u64 = recording.samples.iter().map(|sample| sample.time.0).sum();
        let counted: u64 = counts.iter().sum();
        prop_assert!(all.abs_diff(counted * delay) <= delay, "{counted} snapshots for {all} ns");
        for number in 1..=4 {
            let own = recording.samples.iter().zip(&counts).filter(|(sample, _)| sample.thread.0 == number);
            let (mut time, mut count) = (0, 0);
            for (sample, snapshots) in own {
                time += sample.time.0;
                count += snapshots;
            }
            prop_assert!(time.abs_diff(count * delay) <= 2 * delay, "{count} snapshots for {time} ns");
        }
    }

    #[test]
    fn words_are_what_was_announced(pieces in pieces()) {
        let recording = recording(&pieces);
        let data = recording.data();
        prop_assert_eq!(data.words().len() as u64, recording.words_len());
        prop_assert_eq!(data.blocks().count() as u64, snapshots(&recording).iter().sum::<u64>());
        prop_assert!(data.is_empty() || data.has_meta());
        let bare = data.strip_meta().unwrap();
        prop_assert_eq!(bare.words().len(), data.words().len() - 5 * data.blocks().count());
    }

    #[test]
    fn a_recording_and_its_words_give_the_same_report(pieces in pieces(), report in reports()) {
        let recording = recording(&pieces);
        let (data, dictionary) = (recording.data(), recording.dictionary());
        let mut direct = Vec::new();
        report.write(&recording, &mut direct).unwrap();
        prop_assert_eq!(String::from_utf8(direct).unwrap(), text_of(&report, &data, &dictionary));
    }

    #[test]
    fn lines_of_trees_fit(pieces in pieces(), cols in 1..130_usize) {
        let recording = recording(&pieces);
        for line in text_of(&Report::new().c(true).cols(cols), &recording.data(), &recording.dictionary()).lines().skip(2).take_while(|line| !line.starts_with("Total")) {
            prop_assert!(line.width() <= cols, "{line}");
        }
    }

    #[test]
    fn counts_of_the_outermost_level_are_those_of_all_samples(pieces in pieces()) {
        let recording = recording(&pieces);
        let text = text_of(&Report::new().c(true).maxdepth(0), &recording.data(), &recording.dictionary());
        let count = |line: &str| line.split('╎').nth(1)?.split(' ').next()?.parse::<u64>().ok();
        let outermost: u64 = text.lines().filter_map(count).sum();
        let nonempty = recording.samples.iter().zip(snapshots(&recording)).filter(|(sample, _)| sample.stack.0 != 0);
        prop_assert_eq!(outermost, nonempty.map(|(_, count)| count).sum::<u64>());
    }

    #[test]
    fn children_never_outweigh_their_parent(pieces in pieces(), recur in prop::sample::select(Recur::ALL), c in any::<bool>()) {
        let recording = recording(&pieces);
        let report = Report::new().c(c).recur(recur).cols(2000);
        let text = text_of(&report, &recording.data(), &recording.dictionary());
        // Counts by level, with what their children have summed up to so far.
        let mut open: Vec<(u64, u64)> = Vec::new();
        for line in text.lines().skip(2).filter(|line| line.contains('╎')) {
            let (overhead, rest) = line.split_once('╎').unwrap();
            let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap();
            let level = rest[..digits].chars().count();
            let count: u64 = rest[digits..].split(' ').next().unwrap().parse().unwrap();
            let overhead: u64 = overhead.trim().parse().unwrap_or(0);
            open.truncate(level);
            if let Some((parent, children)) = open.last_mut() {
                *children += count;
                // With recursion folded a sample may pass several children of a node, but none twice.
                prop_assert!(count <= *parent && (recur != Recur::Off || *children <= *parent), "{text}");
            }
            prop_assert!(overhead <= count, "{text}");
            open.push((count, overhead));
        }
    }

    #[test]
    fn any_words_can_be_reported(words in prop::collection::vec(prop_oneof![Just(0_u64), 0..5_u64, any::<u64>()], 0..80), report in reports()) {
        let data = Data::new(words);
        let mut dictionary = Dictionary::new();
        for address in 1..4 {
            dictionary.set(address, (1..address).map(|line| Frame { line: line as i64, ..Frame::unknown(address) }));
        }
        let mut out = Vec::new();
        let written = report.write((&data, &dictionary), &mut out);
        prop_assert!(written.is_ok() == (data.is_empty() || data.has_meta()));
        let _ = (data.strip_meta(), data.add_fake_meta(1, 1), data.thread_ids(None), data.task_ids(Some(1)));
        let (flat, flat_dictionary) = flatten(&data, &dictionary).unwrap();
        prop_assert!(flat.words().iter().all(|word| flat_dictionary.get(*word).is_none_or(|frames| frames.len() == 1)));
        prop_assert!(matches!(Callers::exactly("").count((&data, &dictionary)), Ok(_) | Err(CallersError::NoFunction)));
    }

    #[test]
    fn the_summary_fits(pieces in pieces(), cols in 40..140_usize, everything in any::<bool>()) {
        let recording = recording(&pieces);
        let mut out = Vec::new();
        let screen = Summary::new().cols(cols).everything(everything);
        screen.write(&recording, &mut out).unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            prop_assert!(line.width() <= cols, "{line}");
        }
        let mut coloured = Vec::new();
        screen.style(Style::Ansi).write(&recording, &mut coloured).unwrap();
    }

    #[test]
    fn the_summary_fits_the_screen(pieces in pieces(), rows in 16..60_usize) {
        let recording = recording(&pieces);
        let text = |rows| {
            let mut out = Vec::new();
            Summary::new().rows(rows).write(&recording, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (whole, fitted) = (text(None), text(Some(rows)));
        prop_assert!(fitted.lines().count() <= rows, "{fitted}");
        prop_assert_eq!(&whole, &text(None), "the same recording has the same text");
        prop_assert!(whole.lines().count() > rows || whole == fitted, "{whole}\nin {rows} rows:\n{fitted}");
        let digest = |text: &str| text.rsplit("\n\n").next().unwrap().to_owned();
        prop_assert_eq!(digest(&whole), digest(&fitted));
        let tree = |text: &str| -> Vec<String> {
            let from = text.lines().skip_while(|line| !line.contains("own ms")).skip(1);
            let rows = from.take_while(|line| !line.is_empty()).filter(|line| !line.contains(" hidden"));
            rows.map(|line| line[..30].to_owned()).collect()
        };
        // Rows of a smaller tree are rows of the whole one, apart from the line that counts hidden ones.
        for row in &tree(&fitted) {
            prop_assert!(tree(&whole).contains(row), "{row}\n{whole}");
        }
    }

    #[test]
    fn own_times_of_the_summary_add_up(pieces in pieces(), everything in any::<bool>()) {
        let recording = recording(&pieces);
        let mut out = Vec::new();
        Summary::new().cols(400).everything(everything).write(&recording, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines().skip_while(|line| !line.contains("own ms"));
        let Some(header) = lines.next() else { return Ok(()) };
        let end = header.find("own ms").unwrap() + "own ms".len();
        let (mut sum, mut shown) = (0.0, 0);
        let mut hidden = 0.0;
        for line in lines.take_while(|line| !line.is_empty()) {
            if let Some((_, rest)) = line.split_once("hidden, ") {
                hidden = rest.split(' ').next().unwrap().parse().unwrap();
                continue;
            }
            let own = line[..end].split("  ").last().unwrap().trim().replace(' ', "");
            sum += own.parse().unwrap_or(0.0);
            shown += 1;
        }
        let awake = recording.samples.iter().filter(|sample| sample.state == State::Awake);
        let cpu: f64 = awake.map(|sample| sample.time.0 as f64 * 1e-6).sum();
        // What plumbing was skipped may own almost nothing each, and numbers are rounded.
        let slack = 0.05 * f64::from(shown) + cpu * (hidden + 0.5) / 100.0 + if everything { 0.0 } else { cpu * 0.05 };
        prop_assert!((sum - cpu).abs() <= slack + 0.5 * f64::from(shown), "{sum} of {cpu} ms:\n{text}");
    }
}
