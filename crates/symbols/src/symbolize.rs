//! Symbolizes all locations of a recording, by module and unit, on all CPUs.

use crate::frames::{self, Cache, Draft, FromSymbol, Wanted};
use crate::language;
use crate::module_code::ModuleCode;
use crate::symtab::{self, Symbol};
use crate::types::{self, Contents, Details};
use crate::unnamed::{self, Unnamed};
use crate::{Outcome, Progress, dispatch, perf_map, receivers, wrappers};
use foldhash::{HashMap, HashSet};
use stackglass_debug_info::dwarf::index::{self, Share};
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::loaded::{debug_info, load_for};
use stackglass_debug_info::locate::{self, Files};
use stackglass_debug_info::source::{self, Sources};
use stackglass_debug_info::{Error, Options, parallel, vdso};
use stackglass_profile::recording::Module;
use stackglass_profile::symbols::{Missing, ModuleNote};
use stackglass_profile::{Frame, LocationId, ModuleIndex, Recording, StackId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Fills `recording.symbols` for all locations without frames.
///
/// Inlined calls are separate frames, innermost first; the last frame is the function that contains the code. A function
/// without symbol is named by its start in the unwind table: `libz.so.1+0x2a40`. Locations at calls through a vtable or a
/// function pointer are marked. `progress` is called on the calling thread.
///
/// No file of a module makes this fail or panic. Errors are in the [`Outcome`], missing information is in the symbols'
/// notes.
///
/// ```
/// use stackglass_profile::{Location, Recording};
/// use stackglass_profile::recording::Module;
///
/// let mut recording = Recording::default();
/// let module = recording.intern_module(Module { path: "/bin/true".into(), build_id: [].into() });
/// let location = recording.stacks.intern_location(Location { module: Some(module), offset: 0x1234 });
/// let outcome = stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
/// assert_eq!(outcome.locations, 1);
/// assert!(recording.symbols.frames_of(location).count() >= 1);
/// ```
pub fn symbolize(
    recording: &mut Recording,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    with_contents(recording, options, progress).0
}

/// Symbolizes, and returns what the blocks of stacks of allocations contain, for those without a type before. Blocks whose type is only
/// that of a pointer that receives them have a name, but no contents: the pointer may lead to the head of a larger value.
pub fn with_contents(
    recording: &mut Recording,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> (Outcome, Vec<(StackId, Contents)>) {
    recording.name_tasks();
    let awaits = recording.name_awaits();
    let coroutines = recording.has_await_stacks();
    let mut outcome = Outcome::default();
    let allocating = types::locations(recording);
    let jobs = jobs(recording, &allocating, &mut outcome);
    let threads = options.threads();
    let mut files = parallel::map(
        threads,
        &jobs,
        || (),
        |(), job| locate::files_of(&recording.modules[job.module.0 as usize], options),
        &mut |_| (),
    );
    if options.debuginfod.is_some() {
        let module = |job: &Job| (&recording.modules[job.module.0 as usize], job.addresses.len());
        let modules: Vec<(&Module, usize)> = jobs.iter().map(module).collect();
        outcome.debuginfod = locate::fetch(&modules, &mut files, options);
    }
    let (found, problems) = resolve(&recording.modules, &jobs, &files, coroutines, threads, progress);
    outcome.problems.extend(problems);
    for (job, calls) in jobs.iter().zip(dispatches(&jobs, &files, threads)) {
        calls.into_iter().for_each(|index| recording.symbols.set_dispatches(job.locations[index]));
    }
    let mut details = allocation_details(&jobs, &files, threads);
    let mut sources =
        Naming { sources: Sources::new(options.library_sources.clone()), known: HashMap::default() };
    for location in awaits {
        let mut frames: Vec<Frame> = recording.symbols.frames_of(location).cloned().collect();
        for frame in &mut frames {
            frame.file = source::normalize(&frame.file).into();
            sources.name(frame, recording);
        }
        recording.symbols.set(location, frames);
    }
    for ((job, drafts), files) in jobs.iter().zip(found).zip(&mut files) {
        let module = recording.modules[job.module.0 as usize].clone();
        let mut missing = files.missing;
        if missing.is_none() && outcome.problems.iter().any(|problem| is_split_of(problem, &module)) {
            missing = Some(Missing::DebugInfo);
        }
        if let Some(missing) = missing {
            let language = language::detect(files);
            recording.symbols.note(ModuleNote { module: module.path.clone(), missing, language });
        }
        outcome.problems.append(&mut files.problems);
        let name: Arc<str> = Arc::from(file_name(&module.path));
        for (location, mut draft) in job.locations.iter().zip(drafts) {
            for frame in &mut draft.frames {
                frame.module = name.clone();
                sources.name(frame, recording);
            }
            // A start that serves as name is distinct by its module.
            let is_named = |frame: &Frame| !frame.func.is_empty() && frame.start_as_name().is_none();
            outcome.named += usize::from(draft.frames.iter().any(is_named));
            if !draft.arguments.is_empty() {
                details.entry(*location).or_default().arguments = draft.arguments;
            }
            outcome.with_line += usize::from(draft.frames.iter().any(|frame| frame.line > 0));
            recording.symbols.set(*location, draft.frames);
        }
    }
    let modules: Vec<_> = jobs.iter().map(|job| job.module).zip(files).collect();
    let code = match allocating.is_empty() {
        true => HashMap::default(),
        false => ModuleCode::all(&modules),
    };
    let wrappers = wrappers::mark(recording, &code);
    let contents = types::set(recording, &details);
    if !allocating.is_empty() {
        receivers::set(recording, &code, &wrappers);
    }
    (outcome, contents)
}

/// The locations of one module without frames.
struct Job {
    module: ModuleIndex,
    /// Sorted.
    addresses: Vec<u64>,
    /// In the same order.
    locations: Vec<LocationId>,
    /// In the same order: whether the location is in a stack of an allocation. Empty if none is.
    allocating: Vec<bool>,
}

fn jobs(recording: &mut Recording, allocating: &HashSet<LocationId>, outcome: &mut Outcome) -> Vec<Job> {
    let mut by_module: BTreeMap<u32, Vec<(u64, LocationId)>> = BTreeMap::new();
    let mut homeless = Vec::new();
    for (index, location) in recording.stacks.locations().iter().enumerate() {
        let id = LocationId(index as u32);
        if !recording.symbols.frame_indices(id).is_empty() {
            continue;
        }
        outcome.locations += 1;
        match location.module {
            Some(module) if (module.0 as usize) < recording.modules.len() => {
                by_module.entry(module.0).or_default().push((location.offset, id));
            }
            _ => homeless.push((location.offset, id)),
        }
    }
    let mut compiled = perf_map::names(recording, &homeless.iter().map(|(_, id)| *id).collect());
    for (address, id) in homeless {
        let mut frame = Frame::unknown(address);
        frame.func = compiled.remove(&id).unwrap_or_default();
        outcome.named += usize::from(!frame.func.is_empty());
        recording.symbols.set(id, [frame]);
    }
    let by_module = by_module.into_iter();
    by_module
        .map(|(module, mut wanted)| {
            wanted.sort_unstable_by_key(|(address, _)| *address);
            let (addresses, locations): (_, Vec<LocationId>) = wanted.into_iter().unzip();
            let mut allocates: Vec<bool> =
                locations.iter().map(|location| allocating.contains(location)).collect();
            if !allocates.contains(&true) {
                allocates.clear();
            }
            Job { module: ModuleIndex(module), addresses, locations, allocating: allocates }
        })
        .collect()
}

/// The drafts of each job's addresses, in the order of the addresses.
fn resolve(
    modules: &[Module],
    jobs: &[Job],
    files: &[Files],
    coroutines: bool,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
) -> (Vec<Vec<Draft>>, Vec<Error>) {
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let loaded = parallel::map(
        threads,
        &numbers,
        || (),
        |(), number| load_for(&files[*number], &jobs[*number].addresses),
        &mut |_| (),
    );
    let wanted: Vec<Option<(Wanted<'_>, Vec<Share>)>> = parallel::map(
        threads,
        &numbers,
        || (),
        |(), number| {
            let (job, loaded) = (&jobs[*number], &loaded[*number]);
            let file = loaded.file?;
            let info = debug_info(loaded);
            let shares = index::shares(&info, &job.addresses, &loaded.code);
            let wanted = Wanted {
                info,
                package: loaded.package.as_ref().and_then(|sections| sections.package().ok()),
                addresses: &job.addresses,
                allocating: &job.allocating,
                coroutines,
                code: &loaded.code,
                program: Path::new(&*modules[job.module.0 as usize].path),
                file,
            };
            Some((wanted, shares))
        },
        &mut |_| (),
    );
    // The largest units first, so that no thread works on one alone at the end.
    let mut units: Vec<(usize, &Wanted<'_>, &Share)> = Vec::new();
    for (number, module) in wanted.iter().enumerate() {
        if let Some((wanted, shares)) = module {
            units.extend(shares.iter().map(|share| (number, wanted, share)));
        }
    }
    units.sort_by_key(|(_, wanted, share)| {
        std::cmp::Reverse(wanted.info.headers[share.unit].length_including_self())
    });
    let total = units.len() + jobs.len();
    let found = parallel::map(
        threads,
        &units,
        Cache::default,
        |cache, (_, wanted, share)| frames::of_share(wanted, share, cache),
        &mut |done| progress(Progress { done, total }),
    );
    let mut drafts: Vec<Vec<Draft>> =
        jobs.iter().map(|job| job.addresses.iter().map(|_| Draft::default()).collect()).collect();
    let mut problems: Vec<Error> = Vec::new();
    for ((number, ..), (frames, failed)) in units.iter().zip(found) {
        problems.extend(failed);
        for (index, draft) in frames {
            let known = &mut drafts[*number][index as usize];
            // Where units overlap, the unit with the function counts.
            if known.frames.is_empty() || !has_function(known) && has_function(&draft) {
                *known = draft;
            }
        }
    }
    let named = parallel::map(
        threads,
        &numbers,
        || (),
        |(), number| function_names(&files[*number], &jobs[*number].addresses, &drafts[*number]),
        &mut |done| progress(Progress { done: units.len() + done, total }),
    );
    let mut cache = Cache::default();
    for ((drafts, names), job) in drafts.iter_mut().zip(named).zip(jobs) {
        let module = &modules[job.module.0 as usize];
        let mut unnamed = unnamed::Names::new(unnamed::distinct_name(module, modules));
        for (index, name) in names {
            match name {
                Name::Symbol(name) => apply_symbol(&mut drafts[index], name, &mut cache),
                Name::Unnamed(function) => name_by_start(&mut drafts[index], unnamed.of(function)),
            }
        }
    }
    for draft in drafts.iter_mut().flatten().filter(|draft| draft.frames.is_empty()) {
        draft.frames.push(Frame::unknown(0));
    }
    for loaded in loaded {
        // Dropped here, with the decompressed sections.
        problems.extend(loaded.problems);
        problems.extend(loaded.sections.into_problems());
    }
    (drafts, problems)
}

/// The addresses of each job, by index, that are calls through vtables and function pointers.
fn dispatches(jobs: &[Job], files: &[Files], threads: usize) -> Vec<Vec<usize>> {
    let modules: Vec<(&Job, &Files)> = jobs.iter().zip(files).collect();
    let calls = |(job, files): &(&Job, &Files)| {
        let program = files.program.as_ref();
        program.map(|program| dispatch::calls(program, &job.addresses)).unwrap_or_default()
    };
    parallel::map(threads, &modules, || (), |(), module| calls(module), &mut |_| ())
}

/// All symbols of the functions in stacks of allocations that have several.
fn allocation_details(jobs: &[Job], files: &[Files], threads: usize) -> HashMap<LocationId, Details> {
    let modules: Vec<(&Job, &Files)> = jobs.iter().zip(files).collect();
    let names = |(job, files): &(&Job, &Files)| {
        let (mut locations, mut addresses) = (Vec::new(), Vec::new());
        for (index, _) in job.allocating.iter().enumerate().filter(|(_, allocates)| **allocates) {
            locations.push(job.locations[index]);
            addresses.push(job.addresses[index]);
        }
        let table = files.symbols().filter(|_| !addresses.is_empty());
        let names = table.map(|(elf, table)| symtab::all_names(&elf, table, &addresses)).unwrap_or_default();
        let several = locations.into_iter().zip(names).filter(|(_, names)| names.len() > 1);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        several
            .map(|(location, names)| {
                let names = names.into_iter().map(text).collect();
                (location, Details { names, ..Details::default() })
            })
            .collect::<Vec<_>>()
    };
    parallel::map(threads, &modules, || (), |(), module| names(module), &mut |_| ())
        .into_iter()
        .flatten()
        .collect()
}

fn has_function(draft: &Draft) -> bool {
    draft.frames.last().is_some_and(|frame| !frame.func.is_empty())
}

/// The name of a function that debug information does not name completely.
enum Name<'data> {
    Symbol(&'data [u8]),
    Unnamed(Unnamed),
}

/// Names for the addresses, by index, that debug information does not name completely.
fn function_names<'data>(
    files: &'data Files,
    addresses: &[u64],
    drafts: &[Draft],
) -> Vec<(usize, Name<'data>)> {
    let wanting = |draft: &Draft| draft.from_symbol != FromSymbol::No || !has_function(draft);
    let open: Vec<usize> = (0..drafts.len()).filter(|index| wanting(&drafts[*index])).collect();
    let wanted: Vec<u64> = open.iter().map(|index| addresses[*index]).collect();
    let table = files.symbols().filter(|_| !open.is_empty());
    let mut symbols = vec![None; open.len()];
    if let Some((elf, table)) = &table {
        symbols = symtab::names(elf, *table, &wanted);
    }
    let exports = files.exports_beside();
    if let Some((elf, table)) = &exports {
        for (symbol, export) in symbols.iter_mut().zip(symtab::names(elf, *table, &wanted)) {
            let is_vague = symbol.is_none_or(|symbol| symbol.label.is_some());
            *symbol = export.filter(|export| is_vague && export.label.is_none()).or(*symbol).or(export);
        }
    }
    // In a stripped file, names have gaps, which labels must not cover.
    let has_gaps = exports.is_some() || table.as_ref().is_none_or(|(_, table)| *table == Table::Dynamic);
    let doubtful = |symbol: &Symbol<'_>| has_gaps && symbol.label.is_some();
    let unsure = |at: &usize| symbols[*at].as_ref().map_or(!has_function(&drafts[open[*at]]), doubtful);
    let unsure: Vec<usize> = (0..open.len()).filter(unsure).collect();
    let starts = starts(files, &unsure.iter().map(|at| wanted[*at]).collect::<Vec<_>>());
    let mut names: Vec<Option<Name<'_>>> =
        symbols.iter().map(|symbol| symbol.map(|symbol| Name::Symbol(symbol.name))).collect();
    for (at, function) in unsure.into_iter().zip(starts) {
        let Some(function) = function else { continue };
        let label = symbols[at].and_then(|symbol| symbol.label);
        if label.is_none_or(|label| label < function.start) {
            names[at] = Some(Name::Unnamed(function));
        }
    }
    open.into_iter().zip(names).filter_map(|(index, name)| Some((index, name?))).collect()
}

/// Functions from the unwind table of the program file; separate debug files have none.
fn starts(files: &Files, addresses: &[u64]) -> Vec<Option<Unnamed>> {
    let program = files.program.as_ref().filter(|_| !addresses.is_empty());
    match program.and_then(|program| Elf::parse(program).ok()) {
        Some(elf) => unnamed::functions(&elf, addresses),
        None => vec![None; addresses.len()],
    }
}

fn name_by_start(draft: &mut Draft, name: Arc<str>) {
    if draft.frames.is_empty() {
        draft.frames.push(Frame::unknown(0));
    }
    if let Some(frame) = draft.frames.last_mut() {
        frame.func = name;
    }
}

fn apply_symbol(draft: &mut Draft, name: &[u8], cache: &mut Cache) {
    let named = cache.namer.symbol(name);
    if draft.frames.is_empty() {
        draft.frames.push(Frame::unknown(0));
    }
    let Some(frame) = draft.frames.last_mut() else { return };
    if draft.from_symbol == FromSymbol::All {
        frame.foreign = named.foreign;
    }
    // A compiler's suffix does not make the name better than that in the source.
    if frame.func.is_empty() || !named.foreign || named.spec.is_some() {
        frame.func = named.func;
        frame.spec = named.spec;
    }
    if !frame.foreign && !named.krate.is_empty() {
        frame.krate = named.krate;
    }
}

fn is_split_of(problem: &Error, module: &Module) -> bool {
    matches!(problem, Error::SplitMissing { path, .. } if path == Path::new(&*module.path))
}

fn file_name(path: &str) -> &str {
    if path == vdso::NAME { path } else { path.rsplit('/').next().unwrap_or(path) }
}

/// Replaces recorded source paths by paths of this machine.
struct Naming {
    sources: Sources,
    /// By the address of the recorded path, which is stored so that the address stays valid.
    known: HashMap<usize, (Arc<str>, Arc<str>)>,
}

impl Naming {
    fn name(&mut self, frame: &mut Frame, recording: &mut Recording) {
        if frame.file.is_empty() {
            return;
        }
        let address = frame.file.as_ptr() as usize;
        if let Some((_, known)) = self.known.get(&address) {
            frame.file = known.clone();
            return;
        }
        let (file, short) = self.sources.locate(&frame.file);
        if let Some(short) = short {
            recording.symbols.set_short_path(file.clone(), short);
        }
        let recorded = std::mem::replace(&mut frame.file, file.clone());
        self.known.insert(address, (recorded, file));
    }
}
