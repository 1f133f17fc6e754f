//! How large a recording is and how fast it is written and read: the figures of `FORMAT.md`.
//!
//! `cargo run --release -p stackglass-files --example measure [SAMPLES]`
//!
//! The recording is made up but shaped like a real one: eight threads at 1 kHz of which five
//! mostly sleep, 20 000 distinct stacks of depth 5 to 60 that are met as words are in a language
//! (a few very often), times and clocks with a jitter of some microseconds, a flush each 250 ms.

use stackglass_files::{GlassWriter, read, read_merged, write};
use stackglass_profile::{
    About, Location, Module, ModuleIndex, Nanos, Process, ProcessIndex, Recording, Sample, StackId, State,
    Thread, ThreadNumber,
};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples: u64 = std::env::args().nth(1).map_or(Ok(4_000_000), |n| n.parse())?;
    let folder = tempfile::tempdir()?;
    let live = folder.path().join("live.glass");

    let mut made = Made::new();
    let mut recording = made.beginning();
    let mut writer = GlassWriter::create(&live, &recording.about)?;
    let (mut appending, mut flushes) = (0.0, 0);
    for n in 0..samples {
        made.sample(&mut recording, n);
        if n % 2000 == 0 {
            let start = Instant::now();
            writer.append(&recording)?;
            appending += start.elapsed().as_secs_f64();
            flushes += 1;
        }
    }
    writer.finish(&recording)?;
    let entries = recording.samples.len() as f64;
    let size = live.metadata()?.len() as f64;
    println!("{samples} samples in {entries} entries, {} stack nodes", recording.stacks.nodes().len());
    println!("appended in {flushes} flushes: {:.2} bytes an entry", size / entries);
    println!(
        "  {:.0} ns an entry, {:.0} us a flush",
        appending / entries * 1e9,
        appending / flushes as f64 * 1e6
    );

    let whole = folder.path().join("whole.glass");
    let start = Instant::now();
    write(&whole, &recording)?;
    let seconds = start.elapsed().as_secs_f64();
    let whole_size = whole.metadata()?.len() as f64;
    println!(
        "written at once: {:.2} bytes an entry, {:.1} M entries/s",
        whole_size / entries,
        entries / seconds / 1e6
    );

    for path in [&live, &whole] {
        let start = Instant::now();
        let (back, _) = read(path)?;
        let seconds = start.elapsed().as_secs_f64();
        let size = path.metadata()?.len() as f64;
        assert_eq!(back.samples.len(), recording.samples.len());
        println!("read: {:.1} M entries/s, {:.0} MB/s", entries / seconds / 1e6, size / seconds / 1e6);
        let start = Instant::now();
        let (merged, _) = read_merged(path, |_, _| {})?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "read merged to {} entries: {:.1} M entries/s",
            merged.samples.len(),
            entries / seconds / 1e6
        );
    }
    Ok(())
}

/// The made-up program.
struct Made {
    random: u64,
    stacks: Vec<StackId>,
    clock: u64,
    asleep: [Option<StackId>; 8],
    last: [u64; 8],
}

impl Made {
    fn new() -> Made {
        Made { random: 1, stacks: Vec::new(), clock: 1_000_000_000, asleep: [None; 8], last: [0; 8] }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn beginning(&mut self) -> Recording {
        let mut recording = Recording {
            about: About { command: vec!["made-up".into()], delay: Nanos(1_000_000), ..About::default() },
            processes: vec![Process::default()],
            modules: vec![Module { path: "/bin/made-up".into(), build_id: [7; 20].into() }],
            ..Recording::default()
        };
        for tid in 0..8 {
            let (name, start, cpu) = (format!("worker-{tid}").into(), Nanos(0), Nanos(0));
            recording.threads.push(Thread {
                process: ProcessIndex(0),
                tid,
                name,
                start,
                end: None,
                cpu,
                blocked_signal: false,
            });
        }
        // Stacks grow from earlier ones, as calls do.
        while self.stacks.len() < 20_000 {
            let mut stack = match self.stacks.len() {
                0 => StackId(0),
                n => {
                    let caller = self.random(n as u64);
                    self.stacks[caller as usize]
                }
            };
            for _ in 0..1 + self.random(5) {
                let offset = 0x1000 + self.random(50_000) * 37;
                let location = Location { module: Some(ModuleIndex(0)), offset };
                let location = recording.stacks.intern_location(location);
                stack = recording.stacks.extend(stack, location);
            }
            self.stacks.push(stack);
        }
        recording
    }

    fn sample(&mut self, recording: &mut Recording, n: u64) {
        let thread = (n % 8) as usize;
        if thread == 0 {
            self.clock += 1_000_000 + self.random(4_000) - 2_000;
        }
        self.clock += 300 + self.random(200);
        let sleeps = thread >= 3 && self.random(50) != 0;
        let kept = self.asleep[thread].filter(|_| sleeps);
        let stack = kept.unwrap_or_else(|| {
            // Zipf: rank r is met as often as 1/r.
            let rank = (20_000f64.powf(self.random(1 << 30) as f64 / f64::from(1 << 30))) as usize;
            self.stacks[rank.min(19_999)]
        });
        self.asleep[thread] = sleeps.then_some(stack);
        let (state, hits) = if sleeps { (State::Asleep, 0) } else { (State::Awake, 1) };
        let elapsed = self.clock - self.last[thread];
        self.last[thread] = self.clock;
        // Of a running thread's time a little goes to whoever ran in between.
        let elsewhere = if sleeps { 0 } else { self.random(20_000) };
        recording.push(Sample {
            stack,
            thread: ThreadNumber(thread as u32 + 1),
            task: 0,
            clock: Nanos(self.clock),
            state,
            cut: None,
            hits,
            time: Nanos(elapsed - elsewhere),
        });
    }
}
