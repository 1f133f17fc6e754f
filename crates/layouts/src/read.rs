//! Reads the types, variables and vtables of modules in two passes over their units: see [`index`](super::index) and
//! [`describe`](super::describe).

use super::derived::DerivedTypes;
use super::describe::{self, Types};
use super::entries::Reference;
use super::index::{self, Budget, Found, FoundVariable, Name, UnitIndex};
use super::known_functions::{self, KnownFunctions};
use super::locals::{self, Local, ReadMemory, StoppedFrame};
use super::units::{self, TypeUnit, Units};
use super::variables::{self, Place};
use super::{
    Coroutines, Layout, Layouts, ModuleData, PollFunction, SourceLine, TypeId, Variable, Vtable, Wanted,
    vtables,
};
use foldhash::{HashMap, HashSet};
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::locate;
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::{Options, parallel};
use stackglass_profile::recording::Module;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of names for each byte of debug information.
const MOST_PER_BYTE: u64 = 16;

pub(super) fn read(
    modules: &[Module],
    options: &Options,
    frames: &[StoppedFrame],
    memory: ReadMemory<'_>,
    wanted: Wanted,
) -> (Layouts, Vec<Vec<Local>>) {
    let threads = options.threads();
    let files =
        parallel::map(threads, modules, || (), |(), module| locate::files_of(module, options), &mut |_| ());
    let with_locals = |module: usize| frames.iter().any(|frame| frame.module == module);
    let (mut layouts, locals) = units::with_units(modules, &files, options, &with_locals, |units| {
        of_units(units, modules.len(), threads, frames, memory, wanted)
    });
    for (data, files) in layouts.modules.iter_mut().zip(&files) {
        let file = files.program.as_ref().or(files.debug.as_ref());
        if let Some(elf) = file.and_then(|file| Elf::parse(file).ok()) {
            variables::retain_linked(data, &elf);
        }
        variables::complete(data, files.symbols());
    }
    if wanted == Wanted::Coroutines {
        // Modules without tasks need none.
        let has_tasks = |module: usize| layouts.coroutines.polls.iter().any(|poll| poll.module == module);
        let find = |(module, files)| match module == 0 || has_tasks(module) {
            true => known_functions::find(files),
            false => KnownFunctions::default(),
        };
        layouts.known_functions = files.iter().enumerate().map(find).collect();
        layouts.sources = Some(Arc::new((modules.to_vec(), options.clone())));
    }
    for (module, files) in files.iter().enumerate() {
        let file = files.program.as_ref().and_then(|file| Elf::parse(file).ok());
        let mut vtables = std::mem::take(&mut layouts.modules[module].vtables);
        vtables.retain(|vtable| vtables::has_size(vtable, layouts.get(vtable.type_id).size, file.as_ref()));
        layouts.modules[module].vtables = vtables;
        let found = vtables::of_symbols(&layouts, files);
        let vtables = &mut layouts.modules[module].vtables;
        vtables.extend(found);
        vtables.sort_by_key(|vtable| vtable.address);
        vtables.dedup_by_key(|vtable| vtable.address);
    }
    (layouts, locals)
}

/// What the second pass reads in a unit.
struct Job {
    unit: usize,
    /// Types by id and unit offset.
    types: Vec<(TypeId, usize)>,
    variables: Vec<FoundVariable>,
    awaited: Vec<(Reference, u64, u64)>,
}

/// What the second pass finds in a unit.
#[derive(Default)]
struct Described {
    layouts: Vec<(TypeId, Layout)>,
    statics: Vec<Variable>,
    thread_locals: Vec<Variable>,
    vtables: Vec<Vtable>,
    lines: Vec<(TypeId, Vec<Option<SourceLine>>)>,
    macro_calls: Vec<(TypeId, SourceLine)>,
}

fn of_units(
    units: &Units<'_, '_>,
    modules: usize,
    threads: usize,
    frames: &[StoppedFrame],
    memory: ReadMemory<'_>,
    wanted: Wanted,
) -> (Layouts, Vec<Vec<Local>>) {
    let bytes =
        units.units.iter().map(|unit| unit.unit.unit.header.length_including_self() as u64).sum::<u64>();
    let most = bytes.saturating_mul(MOST_PER_BYTE).max(1 << 20);
    let names = Budget::new(most);
    // The largest units first, so that no thread works on one alone at the end.
    let mut order: Vec<usize> = (0..units.units.len()).collect();
    order.sort_by_key(|unit| std::cmp::Reverse(units.units[*unit].unit.unit.header.length_including_self()));
    let found = parallel::map(
        threads,
        &order,
        HashSet::default,
        |known, unit| index::index(*unit, &units.units[*unit], known, &names, wanted),
        &mut |_| (),
    );
    let mut indexes: Vec<UnitIndex> = order.iter().map(|_| UnitIndex::default()).collect();
    for (unit, found) in order.iter().zip(found) {
        indexes[*unit] = found;
    }
    let (mut types, places) = number(units, &mut indexes, most as usize);
    types.fields = Budget::new(bytes.max(1 << 12));
    let mut coroutines = Coroutines::default();
    for (unit, index) in indexes.iter_mut().enumerate() {
        let module = units.units[unit].module;
        let polls = std::mem::take(&mut index.polls).into_iter();
        let polls = polls.map(|(range, name)| PollFunction {
            module,
            address: range.start,
            size: range.end.saturating_sub(range.start),
            name: name.into(),
        });
        coroutines.polls.extend(polls);
        for name in std::mem::take(&mut index.block_ons) {
            if !coroutines.block_ons.iter().any(|known| **known == *name) {
                coroutines.block_ons.push(name.into());
            }
        }
        for (path, symbol) in std::mem::take(&mut index.coroutines) {
            coroutines.add_function(path, &symbol);
        }
    }
    let mut jobs: Vec<Job> = indexes
        .into_iter()
        .enumerate()
        .map(|(unit, index)| Job {
            unit,
            types: Vec::new(),
            variables: index.variables,
            awaited: index.awaited,
        })
        .collect();
    for (id, (unit, offset)) in places.into_iter().enumerate() {
        jobs[unit].types.push((TypeId(id as u32), offset));
    }
    jobs.retain(|job| !job.types.is_empty() || !job.variables.is_empty() || !job.awaited.is_empty());
    jobs.sort_by_key(|job| std::cmp::Reverse(job.types.len() + job.variables.len()));
    let described = parallel::map(
        threads,
        &jobs,
        || describe::Reader::new(&types),
        |reader, job| describe(reader, job),
        &mut |_| (),
    );
    let mut data: Vec<ModuleData> = (0..modules).map(|_| ModuleData::default()).collect();
    let mut all: Vec<Option<Layout>> = types.named.iter().map(|_| None).collect();
    for (job, mut described) in jobs.iter().zip(described) {
        for (id, layout) in described.layouts {
            all[id.0 as usize] = Some(layout);
        }
        if wanted == Wanted::Coroutines {
            coroutines.lines.extend(described.lines);
            coroutines.macro_calls.extend(described.macro_calls);
        }
        let data = &mut data[units.units[job.unit].module];
        data.statics.append(&mut described.statics);
        data.thread_locals.append(&mut described.thread_locals);
        data.vtables.append(&mut described.vtables);
    }
    let locals = locals::of_frames(&types, frames, memory);
    let derived = types.derived.into_inner().unwrap_or_else(PoisonError::into_inner).into_layouts();
    let rust_version = units.units.iter().find_map(TypeUnit::rust_version);
    let is_rust = units.units.iter().any(|unit| unit.module == 0 && unit.rust_version().is_some());
    let mut layouts = Layouts { modules: data, coroutines, rust_version, is_rust, ..Layouts::default() };
    for layout in all.into_iter().flatten().chain(derived) {
        layouts.add(layout);
    }
    for data in &mut layouts.modules {
        for variable in data.statics.iter_mut().chain(&mut data.thread_locals) {
            variable.size = variable.type_id.map_or(0, |id| layouts.types[id.0 as usize].size);
        }
    }
    (layouts, locals)
}

/// Gives each distinct type an id: the place of the first description by id.
fn number<'units, 'data>(
    units: &'units Units<'units, 'data>,
    indexes: &mut [UnitIndex],
    most_names: usize,
) -> (Types<'units, 'data>, Vec<(usize, usize)>) {
    let mut names: HashMap<u64, Arc<str>> = HashMap::default();
    for index in indexes.iter_mut() {
        names.extend(std::mem::take(&mut index.names));
    }
    for unit in 0..indexes.len() {
        for (signature, name) in std::mem::take(&mut indexes[unit].typedefs) {
            let Some((unit, offset)) = units.refer(unit, Reference::Signature(signature)) else { continue };
            let types = &mut indexes[unit].types;
            if let Ok(at) = types.binary_search_by_key(&offset, |found| found.offset)
                && types[at].name == 0
            {
                types[at].set_name(name);
            }
        }
    }
    let mut by_key: HashMap<u64, TypeId> = HashMap::default();
    let mut by_name: HashMap<u64, TypeId> = HashMap::default();
    let (mut named, mut places) = (Vec::new(), Vec::new());
    let nameless: Arc<str> = "{unnamed}".into();
    let mut new = |unit: usize, found: &Found| {
        let id = TypeId(places.len() as u32);
        places.push((unit, found.offset));
        named.push((names.get(&found.name).unwrap_or(&nameless).clone(), found.size));
        id
    };
    for (unit, index) in indexes.iter().enumerate() {
        for found in index.types.iter().filter(|found| !found.declared) {
            let id = *by_key.entry(found.key).or_insert_with(|| new(unit, found));
            if found.name != 0 {
                by_name.entry(found.name).or_insert(id);
            }
        }
    }
    let mut ids = Vec::with_capacity(indexes.len());
    for (unit, index) in indexes.iter_mut().enumerate() {
        let types = std::mem::take(&mut index.types);
        let id = |found: &Found| match found.declared {
            false => by_key.get(&found.key).copied(),
            true => Some(*by_name.entry(found.name).or_insert_with(|| new(unit, found))),
        };
        ids.push(
            types.iter().map(id).zip(&types).filter_map(|(id, found)| Some((found.offset, id?))).collect(),
        );
    }
    let derived = Mutex::new(DerivedTypes::new(places.len() as u32, most_names));
    (Types { units, ids, named, derived, fields: Budget::new(0) }, places)
}

fn describe(reader: &mut describe::Reader<'_, '_>, job: &Job) -> Described {
    let unit = job.unit;
    let mut found = Described::default();
    for (id, offset) in &job.types {
        let (layout, lines) = reader.layout(*id, unit, *offset);
        found.layouts.push((*id, layout));
        if !lines.is_empty() {
            found.lines.push((*id, lines));
        }
    }
    for (a_type, file, line) in &job.awaited {
        if let (Some(type_id), Some(line)) =
            (reader.type_id(unit, Some(*a_type)), reader.line(unit, *file, *line))
        {
            found.macro_calls.push((type_id, line));
        }
    }
    for variable in &job.variables {
        if let (Name::Path(name), Place::Static(address)) = (&variable.name, variable.place)
            && (name.ends_with("{vtable}") || name == "vtable")
            && let Some(type_id) = reader.containing_type(unit, variable.a_type)
        {
            found.vtables.push(Vtable { address, type_id, offset: 0, of_class: false });
            continue;
        }
        let type_id = match variable.a_type {
            Some(_) => reader.type_id(unit, variable.a_type),
            None => reader.type_of_origin(unit, variable.origin),
        };
        let name = match &variable.name {
            Name::Path(path) => Arc::from(variables::display_name(path)),
            Name::Linkage(symbol) if !symbol.is_empty() => name_of_symbol(symbol).func,
            Name::Linkage(_) => reader.name_of_origin(unit, variable.origin),
        };
        let (list, address) = match variable.place {
            Place::Static(address) => (&mut found.statics, address),
            Place::ThreadLocal(offset) => (&mut found.thread_locals, offset),
        };
        list.push(Variable { name, address, type_id, size: 0 });
    }
    found
}
