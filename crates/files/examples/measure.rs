//! How large a recording is and how fast it is written and read: the figures of `FORMAT.md`.
//!
//! `cargo run --release -p stackglass-files --example measure [SAMPLES]`
//!
//! The recording is made up (`made/mod.rs`); a flush each 250 ms of it.

mod made;

use made::Made;
use stackglass_files::{GlassWriter, read, read_merged, read_tables, write};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples: u64 = std::env::args().nth(1).map_or(Ok(4_000_000), |n| n.parse())?;
    let folder = tempfile::tempdir()?;
    let live = folder.path().join("live.glass");

    let mut made = Made::new();
    let mut recording = made.beginning();
    let mut writer = GlassWriter::create(&live, &recording.info)?;
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

    let groups = 100_000;
    made.allocate(&mut recording, groups);
    let with = folder.path().join("allocations.glass");
    let start = Instant::now();
    write(&with, &recording)?;
    let (with_size, groups) = (with.metadata()?.len() as f64, recording.allocations.groups.len());
    println!(
        "{groups} groups of allocations, {} types: {:.2} bytes a group with types, written in {:.0} ms with the samples",
        recording.symbols.allocated_types().len(),
        (with_size - whole_size) / groups as f64,
        start.elapsed().as_secs_f64() * 1e3
    );
    let start = Instant::now();
    let (back, _, _) = read_tables(&with, |_, _| {})?;
    assert_eq!(back.allocations.groups.len(), groups);
    println!("read without samples in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
