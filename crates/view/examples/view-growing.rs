//! Writes three states of a recording that grows, as a server shows them: `view-growing-1.html` to `view-growing-3.html`.
//! `view-growing FOLDER`

use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread, ThreadNumber,
};
use stackglass_view::{Packed, Page};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

const MS: u64 = 1_000_000;
/// How many functions the first state has below `serve`.
const FIRST: u64 = 120;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    for state in 1..=3 {
        let packed = Packed::new(growing(state), "growing");
        let mut file = File::create(folder.join(format!("view-growing-{state}.html")))?;
        Page::new(&packed).served(state).write_to(&mut file)?;
    }
    Ok(())
}

/// A thread runs serve, a step and its part. Each state adds functions, which come first in it, and a thread. The order by time changes
/// a little. In the third, there is a second process, so that threads are named with theirs.
fn growing(state: u64) -> Recording {
    let mut recording = Recording::default();
    recording.info.wall = Nanos(50_000 * state * MS);
    recording.info.delay = Nanos(MS);
    recording.info.command = vec!["growing".to_owned()];
    for (pid, exe) in (0..state.max(2) - 1).zip(["/bin/growing", "/bin/child"]) {
        recording.processes.push(Process { pid: 7 + pid as u32, exe: exe.into(), ..Process::default() });
    }
    for (tid, name) in (0..=state).zip(["one", "two", "three", "four"]) {
        let (process, start, cpu) = (ProcessIndex((tid / 3) as u32), Nanos(0), Nanos(0));
        let (tid, name) = (7 + tid as u32, name.into());
        recording.threads.push(Thread { process, tid, name, start, end: None, cpu, blocked_signal: false });
    }
    let mut location = |name: String| {
        let offset = name.bytes().fold(0, |sum, byte| sum * 131 % 1_000_000_007 + u64::from(byte));
        let location = recording.stacks.intern_location(Location { module: None, offset });
        let (file, module) = ("src/main.rs".into(), "/bin/growing".into());
        let frame = Frame { func: name.into(), line: 10, file, module, foreign: false, ..Frame::unknown(0) };
        recording.symbols.set(location, [frame]);
        location
    };
    let newer = (FIRST..FIRST + 10 * (state - 1)).rev();
    let steps: Vec<(u64, LocationId, LocationId)> = newer
        .chain(0..FIRST)
        .map(|number| (number, location(format!("step_{number:03}")), location(format!("part_{number:03}"))))
        .collect();
    let serve = location("serve".to_owned());
    let mut clock = 0;
    for (number, step, part) in steps {
        let stack = recording.stacks.intern(&[part, step, serve]);
        // In each state, functions are somewhere near the place that they had.
        let rank = if number < FIRST { number } else { number * 17 % FIRST };
        let time = Nanos((2 * (200 - rank) + number * (31 + 7 * state) % 13) * MS);
        clock += time.0;
        for thread in 1..=2 {
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(thread),
                task: 0,
                clock: Nanos(clock),
                state: State::Awake,
                cut: None,
                hits: 1,
                time,
                spread: Nanos(0),
            });
        }
    }
    recording
}
