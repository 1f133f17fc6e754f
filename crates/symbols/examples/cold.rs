//! Time to symbolize addresses of a program in a new process, compared with a plain loop over the `addr2line` crate.
//!
//! ```text
//! cold PROGRAM [COUNT] [--plain] [--show] [--threads N]
//! ```
//!
//! COUNT addresses (10 000) are random in the program's code, the same in every run. Prints wall time, CPU time and peak memory
//! as one line of JSON; `bench` alternates both ways. `--show` prints the frames.

use anyhow::{Context, Result, bail};
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Recording};
use stackglass_symbols::Options;
use std::time::Instant;

fn main() -> Result<()> {
    let (mut program, mut count, mut plain, mut show, mut threads) = (None, 10_000, false, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--plain" => plain = true,
            "--show" => show = true,
            "--threads" => threads = Some(arguments.next().context("--threads needs a number")?.parse()?),
            text if program.is_none() => program = Some(text.to_owned()),
            text => count = text.parse()?,
        }
    }
    let Some(program) = program else {
        bail!("usage: cold PROGRAM [COUNT] [--plain] [--show] [--threads N]")
    };
    let addresses = spread(&program, count)?;
    let (start, cpu_before) = (Instant::now(), cpu()?);
    let (frames, lines) = if plain {
        plain_loop(&program, &addresses, show)?
    } else {
        symbolize(&program, &addresses, show, threads)
    };
    let wall = start.elapsed();
    println!(
        "{{\"way\":\"{}\",\"addresses\":{},\"frames\":{frames},\"lines\":{lines},\
         \"wall_ns\":{},\"cpu_ns\":{},\"peak_kib\":{}}}",
        if plain { "addr2line" } else { "stackglass" },
        addresses.len(),
        wall.as_nanos(),
        cpu()? - cpu_before,
        peak_memory()?,
    );
    Ok(())
}

/// Addresses in the executable segments, by a fixed generator.
fn spread(program: &str, count: usize) -> Result<Vec<u64>> {
    use object::{Object, ObjectSegment, SegmentFlags};
    let bytes = std::fs::File::open(program)?;
    let cache = object::ReadCache::new(bytes);
    let file = object::File::parse(&cache)?;
    let code: Vec<(u64, u64)> = file
        .segments()
        .filter(|segment| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X)))
        .map(|segment| (segment.address(), segment.size()))
        .collect();
    let total: u64 = code.iter().map(|(_, size)| size).sum();
    if total == 0 {
        bail!("{program} has no code");
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut addresses: Vec<u64> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut offset = (state >> 16) % total;
            code.iter()
                .find_map(|(start, size)| {
                    if offset < *size {
                        return Some(start + offset);
                    }
                    offset -= size;
                    None
                })
                .unwrap_or(0)
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

fn symbolize(program: &str, addresses: &[u64], show: bool, threads: Option<usize>) -> (usize, usize) {
    let mut recording = Recording::default();
    let module = recording.intern_module(Module { path: program.into(), build_id: [].into() });
    let locations: Vec<_> = addresses
        .iter()
        .map(|offset| recording.stacks.intern_location(Location { module: Some(module), offset: *offset }))
        .collect();
    let options = Options { threads, ..Options::default() };
    let outcome = stackglass_symbols::symbolize(&mut recording, &options, &mut |_| ());
    for problem in &outcome.problems {
        eprintln!("{problem}");
    }
    let (mut frames, mut lines) = (0, 0);
    for (address, location) in addresses.iter().zip(locations) {
        for frame in recording.symbols.frames_of(location) {
            frames += 1;
            lines += usize::from(frame.line > 0);
            if show {
                println!("{address:#x} {} {}:{}", frame.func, frame.file, frame.line);
            }
        }
    }
    (frames, lines)
}

/// Uses the crate as in its documentation: load, look up, demangle.
fn plain_loop(program: &str, addresses: &[u64], show: bool) -> Result<(usize, usize)> {
    let loader = addr2line::Loader::new(program).map_err(|error| anyhow::anyhow!("{error}"))?;
    let (mut count, mut lines) = (0, 0);
    for address in addresses {
        let mut frames = loader.find_frames(*address).map_err(|error| anyhow::anyhow!("{error}"))?;
        while let Some(frame) = frames.next()? {
            count += 1;
            let name =
                frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
            let place = frame.location.as_ref().map(|place| (place.file.map(str::to_owned), place.line));
            lines += usize::from(place.as_ref().is_some_and(|(_, line)| line.is_some()));
            if show {
                println!("{address:#x} {name:?} {place:?}");
            }
        }
    }
    Ok((count, lines))
}

/// CPU time of all threads so far in ns, with a resolution of 10 ms.
fn cpu() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("/proc/self/stat without a name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks * 10_000_000)
}

fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).context("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}
