//! From a frozen process to a graph in a sink.

use super::error::HeapError;
use super::options::TakeOptions;
use super::recorded::{self, Recorded, Table};
use super::{interpreters, memory};
use stackglass_heapgraph::blocks::{BlockIndex, Blocks, SiteId, glibc};
use stackglass_heapgraph::graph::{self, Built, Input, Root, Site, Totals};
use stackglass_heapgraph::other_memory::{self, OtherMemory};
use stackglass_heapgraph::roots;
use stackglass_heapgraph::typing::{self, Evidence};
use stackglass_layouts::{BlockType, Layouts, Wanted, allocated_blocks};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::stacks::StackFrame;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, HeapGraphSink, NodeKind, UNREAD_MEMORY,
    UNREAD_REGISTERS,
};
use stackglass_profile::symbols::is_known_type;
use stackglass_profile::{
    Location, LocationId, Module, ModuleIndex, PortableStack, ReachedBlocks, Recording, SizeClass, StackId,
    UNKNOWN_TYPE,
};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The functions of a stack that allocated blocks: the place that names them, then its callers. There is at least one.
pub type SiteFrames<'a> = &'a dyn Fn(&Recording, StackId) -> Vec<AllocatingFunction>;

/// Most functions of such a stack.
pub const MOST_FRAMES: usize = 24;

/// What a graph contains.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Sums.
    pub totals: Totals,
    /// Which blocks something holds, by stack.
    pub reached: Vec<ReachedBlocks>,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// Writes the graph of a core image to a sink: of a frozen process, or of a stored one.
///
/// # Errors
/// [`HeapError`].
pub fn write<S: HeapGraphSink>(
    image: &CoreImage,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    sink: &mut S,
) -> Result<Written, HeapError>
where
    HeapError: From<S::Error>,
{
    let view = ProcessView::open(image);
    let files = view.files();
    let Threads { stacks: threads, frames, .. } = view.threads();
    let (layouts, locals) = view.layouts_and_locals(&files, &options.symbols, &frames, Wanted::Types);
    let modules = view.modules;
    memory::return_unused();
    let Source { mut recording, stacks: site_stacks, table } = Source::from_image(image);
    keep_stacks(&mut recording, &site_stacks);
    let frame_locations = intern_frames(&mut recording, &modules, &files, &frames);
    let (_, contents) = allocated_blocks(&mut recording, &layouts, &options.symbols);
    let mut allocating = AllocationStacks::default();
    let mut sites = sites(&recording, &layouts, &site_stacks, &contents, site_frames, &mut allocating);
    let mut all = roots::statics(&modules, &layouts);
    all.extend(roots::thread_locals(image, &modules, &layouts));
    for (number, (thread, locations)) in threads.iter().zip(&frame_locations).enumerate() {
        let names: Vec<String> = locations.iter().map(|location| frame_name(&recording, *location)).collect();
        let may_be_filling = locations.iter().any(|location| is_in_container(&recording, *location));
        all.extend(roots::stack(image, thread, &frames[number], &names, &locals[number], may_be_filling));
    }
    let portable = (options.with_reached && table.is_some()).then(|| {
        site_stacks.iter().map(|stack| recording.portable_stack(*stack)).collect::<Vec<PortableStack>>()
    });
    // Names are found.
    drop((recording, contents, site_stacks, frames, locals, frame_locations));
    memory::return_unused();
    let (mut blocks, mut remarks) = live_blocks(image, table.as_ref())?;
    // Types that are found later give blocks other sites.
    let recorded = portable.map(|stacks| (stacks, blocks.sites.clone()));
    remarks.extend(interpreters::remark(image.pid, &modules));
    let of_recorder = table.as_ref().map_or_else(Vec::new, |table| table.table.memory(image));
    let OtherMemory { roots: others, unread: unread_memory } =
        other_memory(image, &modules, &blocks, &all, of_recorder);
    all.extend(others);
    let biases: Vec<u64> = modules.iter().map(LoadedModule::bias).collect();
    let known = if table.is_some() { &sites[..] } else { &[] };
    let evidence =
        Evidence { image, blocks: &blocks, sites: known, layouts: &layouts, biases: &biases, roots: &all };
    if table.is_none() || lack_types(&blocks, &sites) {
        let typing = typing::infer(evidence);
        typing.add_sites(&layouts, &mut blocks, &mut sites);
        // Programs without a dynamic loader refuse the preload library: static ones, and most of Go.
        let is_loader = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("ld-linux"));
        let can_record = image.mappings.iter().any(|mapping| is_loader(&mapping.path));
        remarks.extend(table.is_none().then(|| typing.remark(can_record)));
    }
    if table.is_none() {
        remarks.push(
            "sizes are those of malloc's blocks: the program may have asked for a few bytes less".to_owned(),
        );
    }
    let names = |module: usize, addresses: &[u64]| {
        stackglass_symbols::names_of_starts(&files[module], &options.symbols, addresses)
    };
    typing::tell_apart(image, &modules, &names, &mut blocks, &mut sites);
    let input = Input {
        image,
        blocks: &blocks,
        sites: &sites,
        stacks: &allocating,
        layouts: &layouts,
        roots: &all,
        biases: &biases,
        with_texts: options.with_texts,
        all_one: options.all_one,
    };
    memory::return_unused();
    let Built { totals, unreached } = graph::build(&input, sink)?;
    let unread = all.iter().filter(|root| root.name == UNREAD_REGISTERS).count() as u64;
    remarks.extend(unread_registers(unread, totals.unreached_blocks));
    remarks.extend(unread_mappings(&all, unread_memory, totals.unreached_blocks));
    let reached = recorded
        .map(|(stacks, sites)| reached_blocks(&blocks, &sites, &stacks, &unreached))
        .unwrap_or_default();
    Ok(Written { totals, reached, remarks })
}

/// What it means for leak candidates that the registers of so many threads were not read.
fn unread_registers(threads: u64, unreached_blocks: u64) -> Option<String> {
    let told = match threads {
        _ if unreached_blocks == 0 => return None,
        0 => return None,
        1 => "one thread was left alone in a system call: its registers were not read".to_owned(),
        _ => format!("{threads} threads were left alone in system calls: their registers were not read"),
    };
    Some(format!("{told}, and what only they hold counts as leaked; --interrupt-calls reads them"))
}

/// What it means for leak candidates that so many bytes were not read.
fn unread_mappings(roots: &[Root], bytes: u64, unreached_blocks: u64) -> Option<String> {
    if bytes == 0 || unreached_blocks == 0 {
        return None;
    }
    let of_memory = roots.iter().filter(|root| root.name == UNREAD_MEMORY);
    let owners: BTreeSet<&str> = of_memory.map(|root| &*root.owner).collect();
    let first = owners.first()?;
    let others = if owners.len() > 1 { format!(" and {} others", owners.len() - 1) } else { String::new() };
    let size = bytes.div_ceil(1 << 10);
    Some(format!("{size} KiB of {first}{others} could not be read, and what only they hold counts as leaked"))
}

/// Which blocks of each stack and size class something holds. Site 0 is unknown.
fn reached_blocks(
    blocks: &Blocks,
    sites: &[SiteId],
    stacks: &[PortableStack],
    unreached: &[BlockIndex],
) -> Vec<ReachedBlocks> {
    let mut counts: HashMap<(SiteId, SizeClass), (u64, u64)> = HashMap::new();
    let key = |index: usize| (sites[index], SizeClass::from_size(blocks.size(index)));
    for index in (0..blocks.len()).filter(|index| sites[*index] != SiteId(0)) {
        counts.entry(key(index)).or_default().0 += 1;
    }
    for block in unreached.iter().map(|block| block.0 as usize).filter(|index| sites[*index] != SiteId(0)) {
        counts.entry(key(block)).or_default().1 += 1;
    }
    let part = |((site, size_class), (count, unreached)): ((SiteId, SizeClass), (u64, u64))| {
        let stack = stacks.get(site.0 as usize)?.clone();
        Some(ReachedBlocks { stack, size_class, count, reached_count: count - unreached })
    };
    counts.into_iter().filter_map(part).collect()
}

/// Whether so many blocks have no type that a search is worth its time.
fn lack_types(blocks: &Blocks, sites: &[Site]) -> bool {
    const TYPED: usize = 50;
    let untyped = blocks.sites.iter().filter(|site| sites[site.0 as usize].contains.is_none());
    untyped.count() > blocks.len() / TYPED
}

/// Where blocks were allocated.
struct Source {
    recording: Recording,
    /// The stack of each site. Site 0 is unknown.
    stacks: Vec<StackId>,
    /// The recorder's table, if allocations are recorded. Else blocks have no sites.
    table: Option<PartialTable>,
}

/// The recorder's table of live blocks.
struct PartialTable {
    table: Table,
    /// There are blocks that it does not know.
    is_partial: bool,
}

impl Source {
    fn from_image(image: &CoreImage) -> Source {
        match recorded::read(image) {
            Some(Recorded { recording, table, stacks, lost, is_partial }) => {
                let table = PartialTable { table, is_partial: is_partial || lost > 0 };
                Source { recording, stacks, table: Some(table) }
            }
            None => Source { recording: Recording::default(), stacks: vec![StackId(0)], table: None },
        }
    }
}

/// The blocks that the recorder knows, else those of the C library's allocator. Both, if the recorder knows only some. Also
/// remarks for the user.
fn live_blocks(image: &CoreImage, table: Option<&PartialTable>) -> Result<(Blocks, Vec<String>), HeapError> {
    let Some(PartialTable { table, is_partial }) = table else {
        let heap = glibc::live_blocks(image)?;
        let remarks = heap.report.remarks();
        return Ok((heap.blocks, remarks));
    };
    let mut blocks = table.blocks(image);
    let mut remarks = Vec::new();
    if *is_partial {
        match glibc::live_blocks(image) {
            Ok(heap) => {
                blocks.add(&heap.blocks);
                remarks = heap.report.remarks();
                remarks.push("not all allocations are recorded: the other blocks have no type".into());
            }
            Err(_) => remarks.push("not all allocations are recorded: other blocks are missing".into()),
        }
    }
    Ok((blocks, remarks))
}

/// Leaves out the groups of allocations of which nothing is alive: their stacks need no names.
fn keep_stacks(recording: &mut Recording, stacks: &[StackId]) {
    let alive: std::collections::HashSet<StackId> = stacks.iter().copied().collect();
    recording.allocations.groups.retain(|group| alive.contains(&group.stack));
}

/// The locations of the frames of all threads, which then get names as well.
fn intern_frames(
    recording: &mut Recording,
    modules: &[LoadedModule],
    files: &[Module],
    frames: &[Vec<StackFrame>],
) -> Vec<Vec<LocationId>> {
    let mut indices: HashMap<usize, ModuleIndex> = HashMap::new();
    let mut intern = |frame: &StackFrame| {
        let module = modules.iter().position(|module| module.module.range().contains(&frame.lookup));
        let location = match module {
            Some(module) => Location {
                module: Some(*indices.entry(module).or_insert_with(|| index_of(recording, &files[module]))),
                offset: frame.lookup.wrapping_sub(modules[module].bias()),
            },
            None => Location { module: None, offset: frame.lookup },
        };
        recording.stacks.intern_location(location)
    };
    frames.iter().map(|frames| frames.iter().map(&mut intern).collect()).collect()
}

/// The index of a module, which is added if the recording does not have it.
fn index_of(recording: &mut Recording, file: &Module) -> ModuleIndex {
    let known = recording.modules.iter().position(|known| known == file);
    ModuleIndex(known.unwrap_or_else(|| {
        recording.modules.push(file.clone());
        recording.modules.len() - 1
    }) as u32)
}

/// Whether a function of a container of Rust's standard library is at this location, or inlined there.
fn is_in_container(recording: &Recording, location: LocationId) -> bool {
    const CONTAINERS: [&str; 3] = ["alloc::vec::", "alloc::collections::", "hashbrown::"];
    let mut frames = recording.symbols.frames_of(location);
    frames.any(|frame| {
        let path = frame.spec.as_deref().unwrap_or(&frame.func).trim_start_matches('<');
        CONTAINERS.iter().any(|container| path.starts_with(container) || frame.func.starts_with(container))
    })
}

/// The function of a frame and the line where it is.
fn frame_name(recording: &Recording, location: LocationId) -> String {
    match recording.symbols.frames_of(location).last() {
        Some(frame) if !frame.func.is_empty() && frame.line > 0 => {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            format!("{} ({file}:{})", frame.func, frame.line)
        }
        Some(frame) if !frame.func.is_empty() => frame.func.to_string(),
        _ => "(unknown function)".into(),
    }
}

/// The sites of these stacks.
fn sites(
    recording: &Recording,
    layouts: &Layouts,
    stacks: &[StackId],
    contents: &HashMap<StackId, BlockType>,
    site_frames: SiteFrames<'_>,
    allocating: &mut AllocationStacks,
) -> Vec<Site> {
    let mut site = |stack: &StackId| {
        let frames = if stack.0 == 0 { Vec::new() } else { site_frames(recording, *stack) };
        let contains = contents.get(stack).copied();
        // Names of C++ types have several spellings.
        let spelled = contains.filter(|contains| !layouts.is_rust() && *contains != BlockType::Bytes);
        let spelled = spelled.map(|contains| layouts.block_name(contains));
        let known =
            recording.symbols.allocated_type(*stack).map(|name| spelled.unwrap_or_else(|| name.to_string()));
        let (name, kind) = match known {
            // As nothing is known of the value, it counts as unknown.
            Some(name) if contains.is_none() && !is_known_type(&name) => (name, NodeKind::Native),
            Some(name) => {
                let kind = kind_of(&name, contains);
                (name, kind)
            }
            None => match frames.first() {
                Some(site) => (format!("site: {site}"), NodeKind::Native),
                None => (UNKNOWN_TYPE.to_owned(), NodeKind::Native),
            },
        };
        let allocated_by = frames.into_iter().rev().fold(AllocationStack::ROOT, |caller, function| {
            let function = allocating.insert_function(function);
            allocating.insert(caller, function)
        });
        let allocated_by =
            if allocated_by == AllocationStack::ROOT { AllocationStack::UNKNOWN } else { allocated_by };
        Site { name, kind, allocated_by, contains: contains.filter(|contains| is_usable(layouts, *contains)) }
    };
    stacks.iter().map(&mut site).collect()
}

/// Whether the layout is known, so that pointers can be followed.
fn is_usable(layouts: &Layouts, contains: BlockType) -> bool {
    match contains {
        BlockType::One(id)
        | BlockType::Elements(id)
        | BlockType::CountedElements(id)
        | BlockType::SharedElements(id)
        | BlockType::Table(id) => layouts.get(id).size > 0,
        BlockType::Bytes => true,
    }
}

fn kind_of(name: &str, contains: Option<BlockType>) -> NodeKind {
    match contains {
        Some(BlockType::Bytes) => NodeKind::String,
        Some(BlockType::One(_)) => NodeKind::Object,
        Some(_) => NodeKind::Array,
        None if name.starts_with('[') => NodeKind::Array,
        None => NodeKind::Object,
    }
}

fn other_memory(
    image: &CoreImage,
    modules: &[LoadedModule],
    blocks: &Blocks,
    known: &[Root],
    of_recorder: Vec<Range<u64>>,
) -> OtherMemory {
    let mut ranges = of_recorder;
    ranges.extend(recorded::shared_memory(image));
    ranges.extend(modules.iter().flat_map(|module| module.data.iter().cloned()));
    let threads = known.iter().filter(|root| root.kind != graph::RootKind::Static);
    ranges.extend(threads.map(|root| root.range.clone()).filter(|range| !range.is_empty()));
    other_memory::other_memory(image, blocks, &glibc::heaps(image), &ranges)
}
