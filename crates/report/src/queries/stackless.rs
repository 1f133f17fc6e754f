//! Time without a stack, as frames: for formats that hold nothing but stacks.

use super::cut_reasons::no_stack_text;
use super::unaccounted_cpu::{UNACCOUNTED, unaccounted};
use foldhash::HashMap;
use stackglass_profile::{Cut, Frame, Location, Nanos, Recording, Sample, StackId, State, ThreadNumber};

/// Gives samples without a stack a stack of one frame, which is named as reports name it: `[no stack: too short]`.
pub fn name_stackless(recording: &mut Recording) {
    let mut named: HashMap<Option<Cut>, StackId> = HashMap::default();
    for index in 0..recording.samples.len() {
        let Sample { stack: StackId(0), cut, .. } = recording.samples[index] else { continue };
        let stack = *named.entry(cut).or_insert_with(|| stack_named(recording, &no_stack_text(cut)));
        recording.samples[index].stack = stack;
    }
}

/// Makes all samples those of one thread, for formats without threads. Equal stacks of several threads then have one count, which is
/// their time, rounded.
pub fn merge_threads(recording: &mut Recording) {
    for sample in &mut recording.samples {
        (sample.thread, sample.task) = (ThreadNumber(1), 0);
    }
}

/// CPU time in nanoseconds that the kernel has counted and no sample covers; 0 if it is unknown or too little to mention.
pub fn unaccounted_cpu(recording: &Recording) -> u64 {
    let awake = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
    unaccounted(&recording.info, awake.map(|sample| sample.time.0).fold(0, u64::saturating_add))
}

/// Adds a sample of such time, in a stack of one frame: `[unaccounted]`.
pub fn add_unaccounted(recording: &mut Recording, time: u64) {
    if time > 0 {
        let stack = stack_named(recording, UNACCOUNTED);
        let (thread, state, clock) = (ThreadNumber(1), State::Awake, recording.info.start);
        let time = Nanos(time);
        recording.samples.push(Sample {
            stack,
            thread,
            task: 0,
            clock,
            state,
            cut: None,
            hits: 0,
            time,
            spread: Nanos(0),
        });
    }
}

/// A new stack of one frame with this name.
fn stack_named(recording: &mut Recording, name: &str) -> StackId {
    // Offsets are never so large: code has no such addresses.
    let offset = u64::MAX - recording.stacks.locations().len() as u64;
    let location = recording.stacks.intern_location(Location { module: None, offset });
    recording.symbols.set(location, [Frame { func: name.into(), foreign: false, ..Frame::unknown(0) }]);
    recording.stacks.extend(StackId(0), location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_a_frame() {
        let sample = |cut| Sample {
            stack: StackId(0),
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(0),
            state: State::Awake,
            cut,
            hits: 1,
            time: Nanos(50_000_000),
            spread: Nanos(0),
        };
        let samples = vec![sample(Some(Cut::SHORT)), sample(None), sample(Some(Cut::SHORT))];
        let mut recording = Recording { samples, ..Recording::default() };
        recording.info.kernel_cpu = Some(Nanos(200_000_000));
        let missing = unaccounted_cpu(&recording);
        assert_eq!(missing, 50_000_000);
        name_stackless(&mut recording);
        add_unaccounted(&mut recording, missing);
        assert_eq!(unaccounted_cpu(&recording), 0);
        let names: Vec<String> = recording
            .samples
            .iter()
            .flat_map(|sample| recording.stacks.walk(sample.stack))
            .flat_map(|location| recording.symbols.frames_of(location))
            .map(|frame| frame.func.to_string())
            .collect();
        let short = "[no stack: too short]";
        assert_eq!(names, [short, "[fork, exec and exit]", short, "[unaccounted]"]);
    }
}
