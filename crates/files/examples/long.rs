//! Writes a recording of any size, to see what reading it takes: 2 GB stand for about 19 hours of
//! eight threads at 1 kHz. Samples are let go of as they are written, so that making it needs little memory.
//!
//! ```sh
//! cargo run --release -p stackglass-files --example long -- long.glass 2000000000
//! /usr/bin/time -v stackglass print long.glass > /dev/null
//! ```

mod made;

use made::Made;
use stackglass_files::GlassWriter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, bytes] = &arguments[..] else { return Err("give a file and a size in bytes".into()) };
    let bytes: u64 = bytes.parse()?;
    let mut made = Made::new();
    let mut recording = made.beginning();
    let mut writer = GlassWriter::create(path, &recording.info)?;
    let mut n = 0;
    while writer.bytes() < bytes {
        for _ in 0..50_000 {
            made.sample(&mut recording, n);
            n += 1;
        }
        writer.append(&recording)?;
        writer.forget_samples();
        recording.samples.clear();
    }
    made.name(&mut recording);
    recording.info.wall.0 = n / 8 * 1_000_000;
    let totals = writer.finish(&recording)?;
    println!(
        "{n} samples in {} rows, {} stack nodes, {} locations",
        totals.rows, totals.nodes, totals.locations
    );
    Ok(())
}
