//! The site of an allocation: the innermost frame that belongs to neither an allocator nor a standard library.
//!
//! The frames of an allocator that the program itself provides do not count. A block made inside `strdup` or a C++ container therefore belongs to its caller. If a stack has no such frame, the
//! innermost frame outside of allocators is the site.

use super::allocator_frames::{AllocatorFrames, depth_of, frames};
use crate::kinds;
use crate::text::short::in_brackets;
use foldhash::HashMap;
use stackglass_profile::frame::file_name;
use stackglass_profile::heap_graph::AllocatingFunction;
use stackglass_profile::{Frame, Recording, StackId};
use std::sync::Arc;

/// A function at a source line, or a module without names.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct Site {
    /// Source file as recorded. Empty if unknown.
    pub file: Arc<str>,
    /// Source line, -1 if unknown.
    pub line: i64,
    /// Path of the function, or its module in brackets.
    pub func: Arc<str>,
    /// The crate, or for foreign functions the file name of the module. Empty if unknown.
    pub krate: Arc<str>,
}

impl Site {
    fn from_frame(frame: &Frame) -> Site {
        let module = file_name(&frame.module);
        let func = match (&*frame.func, module) {
            ("", "") => "[unknown]".into(),
            ("", module) => in_brackets(module).into(),
            _ => frame.func.clone(),
        };
        let krate = if frame.krate.is_empty() { module.into() } else { frame.krate.clone() };
        let known = !frame.file.is_empty() && frame.line > 0;
        let line = if known { frame.line } else { -1 };
        Site { file: if known { frame.file.clone() } else { "".into() }, line, func, krate }
    }

    /// The site as a frame.
    pub(crate) fn frame(&self) -> Frame {
        let Site { file, line, func, krate } = self.clone();
        Frame { func, file, line, krate, ..Frame::unknown(0) }
    }

    /// `FILE:LINE`, or the function if that is unknown.
    pub(crate) fn location(&self) -> String {
        if self.line > 0 { format!("{}:{}", self.file, self.line) } else { self.func.to_string() }
    }
}

/// The sites of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StackSites {
    /// Index into [`Sites::list`].
    pub site: u32,
    /// The innermost source line of the program itself: not of other crates in Cargo's folders, nor of shared libraries.
    /// The same as `site` if there is none.
    pub own: u32,
}

/// The sites of all stacks that were looked up, numbered.
pub(crate) struct Sites<'a> {
    recording: &'a Recording,
    /// All sites, in the order in which they were first met.
    pub list: Vec<Site>,
    numbers: HashMap<Site, u32>,
    /// By frame index.
    ranks: Vec<Rank>,
    known: HashMap<StackId, StackSites>,
    allocators: AllocatorFrames,
    rust: bool,
}

/// How well a frame explains an allocation. Greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Allocator,
    Library,
    Dependency,
    Own,
}

impl<'a> Sites<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Sites<'a> {
        let rust = recording.has_rust();
        let program = program_crate(recording);
        let rank = |frame| match rank(frame, rust) {
            Rank::Dependency if is_of_program(frame, program) => Rank::Own,
            rank => rank,
        };
        let ranks = recording.symbols.frames().iter().map(rank).collect();
        let (list, numbers, known) = Default::default();
        let allocators = AllocatorFrames::from_recording(recording);
        Sites { recording, list, numbers, ranks, known, allocators, rust }
    }

    /// The sites of a stack.
    pub(crate) fn of(&mut self, stack: StackId) -> StackSites {
        if let Some(known) = self.known.get(&stack) {
            return *known;
        }
        // By rank: the innermost frame of at least this rank.
        let mut found: [Option<Site>; 4] = Default::default();
        let recording = self.recording;
        let inside = self.allocators.depth(recording, stack);
        for_each_frame(recording, stack, inside, &mut |index, frame| {
            let rank = index.map_or_else(|| rank(frame, self.rust), |index| self.ranks[index as usize]);
            for found in &mut found[..=rank as usize] {
                found.get_or_insert_with(|| Site::from_frame(frame));
            }
        });
        let [innermost, outside, site, own] = found;
        let site = site.or(outside).or(innermost).unwrap_or_else(|| Site::from_frame(&Frame::unknown(0)));
        let own = own.filter(|own| own.line > 0).unwrap_or_else(|| site.clone());
        let sites = StackSites { site: self.number(site), own: self.number(own) };
        self.known.insert(stack, sites);
        sites
    }

    fn number(&mut self, site: Site) -> u32 {
        let next = self.list.len() as u32;
        let list = &mut self.list;
        *self.numbers.entry(site).or_insert_with_key(|site| {
            list.push(site.clone());
            next
        })
    }
}

/// The frames of a stack behind the `inside` innermost ones, with their indices. A location without names is a frame with its module
/// only.
fn for_each_frame(
    recording: &Recording,
    stack: StackId,
    inside: usize,
    meet: &mut dyn FnMut(Option<u32>, &Frame),
) {
    for (location, index) in frames(recording, stack).skip(inside) {
        match index {
            Some(number) => meet(index, &recording.symbols.frames()[number as usize]),
            None => {
                let module = recording.stacks.location(location).module;
                let module = module.and_then(|module| recording.modules.get(module.0 as usize));
                let path = module.map_or_else(|| "".into(), |module| module.path.clone());
                meet(None, &Frame { module: path, ..Frame::unknown(0) });
            }
        }
    }
}

/// The functions of a stack from its site on, the site first: at most `most`. `rust`: the program has Rust code
/// ([`Recording::has_rust`]).
pub fn site_frames(
    recording: &Recording,
    stack: StackId,
    rust: bool,
    most: usize,
) -> Vec<AllocatingFunction> {
    let (mut best, mut found) = (None, Vec::new());
    for_each_frame(recording, stack, depth_of(recording, stack), &mut |_, frame| {
        // Own code is no better site than a dependency.
        if best < Some(Rank::Dependency) {
            let rank = rank(frame, rust).min(Rank::Dependency);
            if best.is_none_or(|best| rank > best) {
                best = Some(rank);
                found.clear();
            }
        }
        if found.len() < most {
            let Site { file, line, func, .. } = Site::from_frame(frame);
            found.push(AllocatingFunction { name: func, file, line: u32::try_from(line).unwrap_or(0) });
        }
    });
    if found.is_empty() {
        found.push(AllocatingFunction { name: "[unknown]".into(), ..Default::default() });
    }
    found
}

/// The crate of the function `main`. Empty if it is unknown.
fn program_crate(recording: &Recording) -> &str {
    let is_main = |frame: &&Frame| frame.func.strip_suffix("::main") == Some(&*frame.krate);
    recording.symbols.frames().iter().find(is_main).map_or("", |frame| &*frame.krate)
}

/// Whether a frame belongs to the program's crate, or to one that carries its name: `jaq_core` in `jaq`. Programs that Cargo
/// installed lie in its folders, as their dependencies do.
fn is_of_program(frame: &Frame, program: &str) -> bool {
    let rest = frame.krate.strip_prefix(program);
    !program.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn rank(frame: &Frame, rust: bool) -> Rank {
    match () {
        () if kinds::is_memory(frame) => Rank::Allocator,
        () if !kinds::is_allocation_site(frame, rust) => Rank::Library,
        () if kinds::is_library(frame) || kinds::is_dependency(&frame.file) => Rank::Dependency,
        () => Rank::Own,
    }
}
