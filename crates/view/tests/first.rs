//! The first picture, against sums over the samples.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread, ThreadNumber,
};
use stackglass_view::{Packed, Page};
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;

mod numbers;

const WALL: u64 = 1_000_000;
const THREADS: u32 = 5;

/// A sample: its functions from the outermost on, thread, state, clock and time.
type Made = (Vec<u8>, u32, State, u64, u64);

/// Threads 1 to 3 are of the first process, others of the second. Function `n` is `f{n}`; locations from 10 on are other lines of them.
fn recording(samples: &[Made]) -> Recording {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(1000);
    recording.info.start = Nanos(5000);
    recording.info.wall = Nanos(WALL);
    for pid in 0..2 {
        recording.processes.push(Process { pid, exe: "/bin/program".into(), ..Process::default() });
    }
    for tid in 1..=THREADS {
        recording.threads.push(Thread {
            process: ProcessIndex(u32::from(tid > 3)),
            tid,
            name: "thread".into(),
            start: Nanos(5000),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
    }
    for number in 0..20_u64 {
        let location = recording.stacks.intern_location(Location { module: None, offset: number });
        let frame = Frame {
            func: format!("f{}", number % 10).into(),
            line: number as i64,
            foreign: false,
            ..Frame::unknown(0)
        };
        recording.symbols.set(location, [frame]);
    }
    for (stack, thread, state, clock, time) in samples {
        let leaf_first: Vec<LocationId> = stack.iter().rev().map(|at| LocationId(u32::from(*at))).collect();
        recording.samples.push(Sample {
            stack: recording.stacks.intern(&leaf_first),
            thread: ThreadNumber(*thread),
            task: 0,
            clock: Nanos(5000 + clock),
            state: *state,
            cut: None,
            hits: 1,
            time: Nanos((*time).min(*clock)),
            spread: Nanos(0),
        });
    }
    recording
}

/// What a first picture has.
struct First {
    head: serde_json::Value,
    columns: HashMap<String, Vec<u64>>,
    strings: Vec<String>,
}

impl First {
    fn read(packed: &Packed) -> First {
        let head: serde_json::Value = serde_json::from_str(&packed.first_picture().unwrap()).unwrap();
        let text = BASE64.decode(head["bytes"].as_str().unwrap()).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(&text[..]).read_to_end(&mut bytes).unwrap();
        let (mut columns, mut strings) = (HashMap::new(), Vec::new());
        let mut rest = &bytes[..];
        for entry in head["columns"].as_array().unwrap() {
            let (column, after) = rest.split_at(entry[1].as_u64().unwrap() as usize);
            rest = after;
            match entry[0].as_str().unwrap() {
                "strings" => strings = serde_json::from_slice(column).unwrap(),
                name => drop(columns.insert(name.to_owned(), numbers::numbers(column))),
            }
        }
        assert!(rest.is_empty());
        First { head, columns, strings }
    }

    fn column(&self, name: &str) -> &[u64] {
        &self.columns[name]
    }

    /// Total and own time, and hits, by the names on the way to a box.
    fn boxes(&self) -> BTreeMap<Vec<String>, [u64; 3]> {
        let mut ways = vec![Vec::new()];
        let columns = ["above", "function", "total", "own", "hits"];
        let [above, function, total, own, hits] = columns.map(|name| self.column(&format!("boxes.{name}")));
        let all = (0..above.len()).map(|i| {
            let mut way = ways[i + 1 - above[i] as usize].clone();
            let name = self.column("functions.name")[function[i] as usize];
            way.push(self.strings[name as usize].clone());
            ways.push(way.clone());
            (way, [total[i], own[i], hits[i]])
        });
        all.collect()
    }

    /// The time in a lane, and the most by which it may be wrong.
    fn lane(&self, key: &str) -> (u64, u64) {
        let parts = self.head["parts"].as_u64().unwrap() as usize;
        let (mut kinds, mut values) = (self.column("lanes.kinds").iter(), self.column("lanes.values"));
        for (lane, unit) in self.head["lanes"].as_array().unwrap().iter().zip(self.column("lanes.units")) {
            let count = *kinds.next().unwrap() as usize;
            kinds.by_ref().take(count).for_each(drop);
            let (own, rest) = values.split_at(count * parts);
            values = rest;
            if lane == key {
                let parts = own.iter().filter(|value| **value > 0).count() as u64;
                return (own.iter().sum::<u64>() * unit, parts * unit);
            }
        }
        panic!("there is no lane {key}");
    }
}

fn states() -> impl Strategy<Value = State> {
    prop::sample::select(vec![State::Awake, State::Asleep, State::Waiting])
}

proptest! {
    #[test]
    fn boxes_threads_and_lanes_are_sums_over_samples(samples in prop::collection::vec(
        (prop::collection::vec(0..20_u8, 1..5), 1..=THREADS, states(), 1..=WALL, 1..20_000_u64), 1..40
    )) {
        let recording = recording(&samples);
        let packed = Packed::new(recording.clone(), "test");
        let first = First::read(&packed);
        let mut expected: BTreeMap<Vec<String>, [u64; 3]> = BTreeMap::new();
        let mut times: BTreeMap<(State, u32), u64> = BTreeMap::new();
        for (sample, (stack, thread, state, ..)) in recording.samples.iter().zip(&samples) {
            let time = sample.time.0;
            *times.entry((*state, *thread)).or_default() += time;
            if *state != State::Awake {
                continue;
            }
            let way: Vec<String> = stack.iter().map(|at| format!("f{}", at % 10)).collect();
            for depth in 0..=way.len() {
                let of = expected.entry(way[..depth].to_vec()).or_default();
                of[0] += time;
                of[1] += if depth == way.len() { time } else { 0 };
                of[2] += 1;
            }
        }
        let root = expected.remove(&Vec::new()).unwrap_or_default();
        let at_root: Vec<u64> = serde_json::from_value(first.head["root"].clone()).unwrap();
        prop_assert_eq!(at_root, root);
        // Few boxes are all there.
        expected.retain(|_, [total, ..]| *total > 0);
        prop_assert_eq!(first.boxes(), expected);
        let names = [("times.cpu", State::Awake), ("times.asleep", State::Asleep), ("times.ready", State::Waiting)];
        let of = |state: State, thread: u32| times.get(&(state, thread)).copied().unwrap_or(0);
        for (name, state) in names {
            let by_thread: Vec<u64> = (0..=THREADS).map(|thread| of(state, thread)).collect();
            prop_assert_eq!(first.column(name), by_thread);
        }
        let cpu = |threads: std::ops::RangeInclusive<u32>| threads.map(|thread| of(State::Awake, thread)).sum::<u64>();
        let mut lanes = vec![("all".to_owned(), cpu(1..=THREADS)), ("p0".to_owned(), cpu(1..=3)), ("p1".to_owned(), cpu(4..=THREADS))];
        for thread in 1..=THREADS {
            lanes.push((format!("t{thread}"), names.iter().map(|(_, state)| of(*state, thread)).sum()));
        }
        for (key, time) in lanes {
            let (told, error) = first.lane(&key);
            prop_assert!(told.abs_diff(time) <= error, "{key}: {told} ± {error}, not {time}");
        }
    }
}

/// However much a recording has, the first picture is small, and the file has it before the script and the columns.
#[test]
fn the_first_picture_is_small_and_comes_first() {
    let mut random = 1_u64;
    let mut below = move |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    let samples: Vec<Made> = (0..100_000)
        .map(|number| {
            let stack = (0..1 + below(12)).map(|_| below(20) as u8).collect();
            let state = [State::Awake, State::Asleep, State::Waiting][below(3) as usize];
            (stack, 1 + (number % u64::from(THREADS)) as u32, state, 1 + below(WALL), 1 + below(500))
        })
        .collect();
    let packed = Packed::new(recording(&samples), "test");
    let text = packed.first_picture().unwrap();
    assert!(text.len() <= 200_000, "{} bytes", text.len());
    let page = |page: Page<'_>| {
        let mut html = Vec::new();
        page.write_to(&mut html).unwrap();
        String::from_utf8(html).unwrap()
    };
    let file = page(Page::new(&packed));
    let place = |what: &str| file.find(what).unwrap();
    assert!(place("id=\"head\"") < place("id=\"first\"") && place("id=\"first\"") < place("<script>"));
    let script = place("<script>");
    let columns = script + file[script..].find("</script>").unwrap();
    assert!(file[columns..].contains("class=\"columns\">") && !file[..script].contains("class=\"columns\">"));
    // A page that a server shows has none.
    assert!(!page(Page::new(&packed).served(1)).contains("id=\"first\">"));
    // Nor has what cannot be drawn at once.
    assert!(Packed::new(Recording::default(), "empty").first_picture().is_none());
}
