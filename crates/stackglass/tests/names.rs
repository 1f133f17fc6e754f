//! Whatever the crate's functions take or give back has a name in this crate: programs that add it alone can
//! keep it in a struct, match on it, or pass it on.

use stackglass::model::{
    Address, Block, Blocks, Cut, End, Location, LocationId, Missing, Module, ModuleIndex, ModuleNote, Nanos,
    Process, ProcessIndex, RecordingInfo, Sample, StackId, Stacks, State, Symbols, TaskId, Thread,
    ThreadNumber,
};
use stackglass::{
    Answer, Called, Caller, Callers, CallersError, Data, DataError, Dictionary, FilePattern, Format, Frame,
    NO_SAMPLES, NoAddressLeft, Pick, Recording, Report, ReportError, ShortPath, Source, UnknownValue,
    Written, flatten,
};
use std::sync::Arc;

#[test]
fn results_can_be_named() {
    let mut dictionary: Dictionary = Dictionary::new();
    let frame: Frame = Frame { func: "f".into(), file: "/p/a.rs".into(), line: 3, ..Frame::unknown(16) };
    dictionary.set(16, [frame]);
    let short: ShortPath = ShortPath { prefix: "@p".into(), rest: "a.rs".into() };
    dictionary.set_short_path("/p/a.rs".into(), short);
    let data: Data = Data::new(vec![16, 1, 7, 100, 1, 0, 0]);

    let written: Result<Written, ReportError> =
        Report::new().c(true).write((&data, &dictionary), &mut Vec::new());
    assert_eq!(written.unwrap(), Written::default());
    let written = Report::new().write((&Data::default(), &dictionary), &mut Vec::new()).unwrap();
    assert_eq!(written.warnings, [NO_SAMPLES]);
    let refused: DataError = data.add_fake_meta(1, 1).unwrap_err();
    assert_eq!(refused, DataError::HasMetadata);
    let unknown: UnknownValue = "table".parse::<Format>().unwrap_err();
    assert_eq!((unknown.given.as_str(), "1-3".parse::<Pick>()), ("table", Ok(Pick::Range(1..=3))));

    let callers: Result<Vec<Caller>, CallersError> =
        Callers::new("f").lines(1..=2).count((&data, &dictionary));
    assert_eq!(callers.unwrap_err(), CallersError::LinesWithoutFile);
    let answer: Answer = Callers::new("f").answer((&data, &dictionary)).unwrap();
    let [called]: &[Called] = &answer.functions else { panic!("{answer:?}") };
    assert_eq!((called.snapshots, called.uncalled), (1, 1));
    let flat: Result<(Data, Dictionary), NoAddressLeft> = flatten(&data, &dictionary);
    assert_eq!(flat.unwrap().0, data);
    let source: Source<'_> = Source::from((&data, &dictionary));
    assert_eq!(source.files(&FilePattern::new("@p")).len(), 1);
    let mut blocks: Blocks<'_> = data.blocks();
    let block: Block<'_> = blocks.next().unwrap();
    assert_eq!(block.addresses, [16]);
}

/// Compiles: a recording taken apart, with all its types by name.
fn parts(recording: &Recording) -> Option<(Address, TaskId)> {
    let info: &RecordingInfo = &recording.info;
    let _: (Option<End>, Nanos) = (info.end, info.start);
    let process: &Process = recording.processes.first()?;
    let _: Nanos = process.start;
    let thread: &Thread = recording.thread(ThreadNumber(1))?;
    let _: ProcessIndex = thread.process;
    let module: &Module = recording.modules.first()?;
    let _: &Arc<str> = &module.path;
    let sample: &Sample = recording.samples.first()?;
    let _: (State, Option<Cut>) = (sample.state, sample.cut);
    let (stacks, stack): (&Stacks, StackId) = (&recording.stacks, sample.stack);
    let location: LocationId = stacks.walk(stack).next()?;
    let place: Location = stacks.location(location);
    let _: Option<ModuleIndex> = place.module;
    let symbols: &Symbols = &recording.symbols;
    let note: &ModuleNote = symbols.notes().first()?;
    let _: Missing = note.missing;
    Some((Address(0), recording.task_of(sample)))
}

#[test]
fn parts_of_recordings_can_be_named() {
    assert_eq!(parts(&Recording::default()), None);
}
