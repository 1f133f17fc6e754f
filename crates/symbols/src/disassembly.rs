//! The instructions of the functions in which a program spends its CPU time.
//!
//! They are read from the files of programs and libraries. A file must have the build id of the recording; one without a build id must
//! be older than the recording.

use crate::block_flow::{Callees, Target};
use crate::dispatch::functions_around;
use crate::symbolize;
use foldhash::HashMap;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction as Decoded, IntelFormatter, SymbolResolver, SymbolResult,
};
use stackglass_debug_info::Options;
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::locate::{self, Files};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_profile::symbols::Missing;
use stackglass_profile::{Location, LocationId, ModuleIndex, Recording};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Most functions.
const FUNCTIONS: usize = 200;
/// Most bytes of text of all instructions.
const TEXT: usize = 1 << 20;
/// Most bytes of code of a function.
const LARGEST: u64 = 256 << 10;

/// Functions, those with most CPU time first.
#[derive(Clone, Debug, Default)]
pub struct Disassembly {
    /// The functions.
    pub functions: Vec<FunctionCode>,
    /// CPU time (ns) in code that is not among them, by module and reason, most first. `None` is code in no module.
    pub left: Vec<(Option<ModuleIndex>, Why, u64)>,
}

/// The code of a function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// Its module.
    pub module: ModuleIndex,
    /// Its addresses in the file.
    pub addresses: Range<u64>,
    /// All of its instructions.
    pub instructions: Vec<Instruction>,
    /// The locations in it in which samples end.
    pub leaves: Vec<LocationId>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Its address in the file.
    pub address: u64,
    /// In the syntax of Intel.
    pub text: String,
    /// Its source file; empty if unknown.
    pub file: Arc<str>,
    /// Its line there.
    pub line: i64,
    /// The innermost function that it is from: one that may be inlined.
    pub function: Arc<str>,
}

/// Why code is not disassembled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    /// The code has no file: it was made at run time, or is the kernel's.
    InNoFile,
    /// The file is not there, or cannot be read.
    NotFound,
    /// The file is another one than the recorded.
    Changed,
    /// The code is of another kind of CPU.
    OtherMachine,
    /// Nothing tells where its function begins.
    NoFunction,
    /// There was no room for it.
    NoRoom,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::InNoFile => "in no file",
            Why::NotFound => "its file is not here",
            Why::Changed => "its file has changed since the recording",
            Why::OtherMachine => "code of this CPU is not disassembled yet: only that of x86-64 is",
            Why::NoFunction => "nothing says where the function begins",
            Why::NoRoom => "no room: hotter functions come first",
        })
    }
}

/// A function with time, before it is decoded.
struct Hot {
    module: ModuleIndex,
    addresses: Range<u64>,
    time: u64,
    leaves: Vec<LocationId>,
}

/// Disassembles the functions in which samples end that used a CPU: at most 200, with 1 MiB of text.
///
/// ```
/// use stackglass_profile::Recording;
///
/// let nothing = stackglass_symbols::disassembly(&Recording::default(), &Default::default());
/// assert!(nothing.functions.is_empty() && nothing.left.is_empty());
/// ```
pub fn disassembly(recording: &Recording, options: &Options) -> Disassembly {
    let mut left: BTreeMap<(Option<u32>, Why), u64> = BTreeMap::new();
    let mut files: HashMap<ModuleIndex, Files> = HashMap::default();
    let mut hot = Vec::new();
    for (module, leaves) in leaves(recording) {
        let time = leaves.iter().map(|(_, _, time)| time).sum();
        let mut leave = |why, time| *left.entry((module.map(|module| module.0), why)).or_default() += time;
        let Some((number, module)) =
            module.and_then(|number| Some((number, recording.modules.get(number.0 as usize)?)))
        else {
            leave(Why::InNoFile, time);
            continue;
        };
        let found = locate::files_of(module, options);
        match readable(recording, &found, module.build_id.is_empty()) {
            Ok(elf) => hot.extend(functions(&elf, number, &leaves, |time| leave(Why::NoFunction, time))),
            Err(why) => {
                leave(why, time);
                continue;
            }
        }
        files.insert(number, found);
    }
    hot.sort_by(|a, b| b.time.cmp(&a.time).then(a.addresses.start.cmp(&b.addresses.start)));
    let (mut functions, mut room) = (Vec::new(), TEXT);
    let mut callees: HashMap<ModuleIndex, Callees<'_>> = HashMap::default();
    for one in hot {
        let files = &files[&one.module];
        let callees = callees.entry(one.module).or_insert_with(|| Callees::from_files(files));
        let fits = functions.len() < FUNCTIONS && one.addresses.end - one.addresses.start <= LARGEST;
        let instructions = if fits { decoded(files, callees, &one.addresses) } else { Vec::new() };
        let size = instructions.iter().map(|code| code.text.len() + 1).sum::<usize>();
        if instructions.is_empty() || size > room {
            *left.entry((Some(one.module.0), Why::NoRoom)).or_default() += one.time;
            continue;
        }
        room -= size;
        let Hot { module, addresses, leaves, .. } = one;
        functions.push(FunctionCode { module, addresses, instructions, leaves });
    }
    add_lines(recording, options, &mut functions);
    let mut left: Vec<_> =
        left.into_iter().map(|((module, why), time)| (module.map(ModuleIndex), why, time)).collect();
    left.sort_by_key(|(_, _, time)| std::cmp::Reverse(*time));
    Disassembly { functions, left }
}

/// The locations in which samples end that used a CPU, by module: address, location, time.
fn leaves(recording: &Recording) -> BTreeMap<Option<ModuleIndex>, Vec<(u64, LocationId, u64)>> {
    let mut times: HashMap<LocationId, u64> = HashMap::default();
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        if let Some((_, leaf)) = recording.stacks.frame(sample.stack) {
            *times.entry(leaf).or_default() += sample.time.0;
        }
    }
    let mut by_module: BTreeMap<Option<ModuleIndex>, Vec<(u64, LocationId, u64)>> = BTreeMap::new();
    for (id, time) in times {
        let Location { module, offset } = recording.stacks.location(id);
        by_module.entry(module).or_default().push((offset, id, time));
    }
    by_module.values_mut().for_each(|leaves| leaves.sort_unstable());
    by_module
}

/// The file with the code of a module.
fn readable<'f>(recording: &Recording, files: &'f Files, has_no_id: bool) -> Result<Elf<'f>, Why> {
    let Some(program) = &files.program else {
        return Err(if files.missing == Some(Missing::Changed) { Why::Changed } else { Why::NotFound });
    };
    let elf = Elf::parse(program).map_err(|_| Why::NotFound)?;
    if !elf.is_x86_64() {
        return Err(Why::OtherMachine);
    }
    let started = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(recording.info.started));
    let modified = program.path().metadata().and_then(|file| file.modified()).ok();
    if has_no_id && modified.zip(started).is_some_and(|(modified, started)| modified > started) {
        return Err(Why::Changed);
    }
    Ok(elf)
}

/// The functions around sorted leaves. `none` gets the time of those around which there is none.
fn functions(
    elf: &Elf<'_>,
    module: ModuleIndex,
    leaves: &[(u64, LocationId, u64)],
    mut none: impl FnMut(u64),
) -> Vec<Hot> {
    let addresses: Vec<u64> = leaves.iter().map(|(address, ..)| *address).collect();
    let mut found: Vec<Hot> = Vec::new();
    for (around, (_, id, time)) in functions_around(elf, &addresses).into_iter().zip(leaves) {
        match (around, found.last_mut()) {
            (None, _) => none(*time),
            (Some(addresses), Some(last)) if last.addresses == addresses => {
                last.time += time;
                last.leaves.push(*id);
            }
            (Some(addresses), _) => found.push(Hot { module, addresses, time: *time, leaves: vec![*id] }),
        }
    }
    found
}

/// Names of what instructions reach in other functions, by address: the function that is called, or the slot of the dynamic linker that
/// has its address.
struct Names(HashMap<u64, String>);

impl Names {
    fn new(elf: &Elf<'_>, callees: &Callees<'_>, code: &[Decoded], inside: &Range<u64>) -> Names {
        let named = |code: &Decoded| {
            let target = Target::of(code);
            let address = match target {
                Target::Function(address) if !inside.contains(&address) => address,
                Target::Slot(address) => address,
                Target::Function(_) | Target::Unknown => return None,
            };
            Some((address, name_of_symbol(callees.name(elf, target)?).func.to_string()))
        };
        Names(code.iter().filter_map(named).collect())
    }
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        _instruction: &Decoded,
        _operand: u32,
        _instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        Some(SymbolResult::with_str(address, self.0.get(&address)?))
    }
}

fn decoded(files: &Files, callees: &Callees<'_>, addresses: &Range<u64>) -> Vec<Instruction> {
    let Some(elf) = files.program.as_ref().and_then(|program| Elf::parse(program).ok()) else {
        return Vec::new();
    };
    let size = usize::try_from(addresses.end - addresses.start).unwrap_or(usize::MAX);
    let Some(code) = elf.bytes_at(addresses.start).and_then(|code| code.get(..size)) else {
        return Vec::new();
    };
    let code: Vec<Decoded> =
        Decoder::with_ip(64, code, addresses.start, DecoderOptions::NONE).into_iter().collect();
    let names = Names::new(&elf, callees, &code, addresses);
    let mut formatter = IntelFormatter::with_options(Some(Box::new(names)), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_space_after_operand_separator(true);
    options.set_rip_relative_addresses(false);
    options.set_branch_leading_zeros(false);
    options.set_first_operand_char_index(8);
    options.set_show_branch_size(false);
    let nothing: Arc<str> = Arc::from("");
    let instruction = |code: &Decoded| {
        let mut text = String::new();
        formatter.format(code, &mut text);
        Instruction { address: code.ip(), text, file: nothing.clone(), line: 0, function: nothing.clone() }
    };
    code.iter().map(instruction).collect()
}

/// Sets lines and functions of all instructions: each is a location of a recording that has nothing else.
fn add_lines(recording: &Recording, options: &Options, functions: &mut [FunctionCode]) {
    let mut lookup = Recording { modules: recording.modules.clone(), ..Recording::default() };
    for function in functions.iter() {
        for code in &function.instructions {
            lookup.stacks.intern_location(Location { module: Some(function.module), offset: code.address });
        }
    }
    // What debuginfod has was fetched for the recording.
    symbolize(&mut lookup, options, &mut |_| ());
    for function in functions {
        for code in &mut function.instructions {
            let at = Location { module: Some(function.module), offset: code.address };
            let location = lookup.stacks.intern_location(at);
            let Some(frame) = lookup.symbols.frames_of(location).next() else { continue };
            (code.file, code.line, code.function) = (frame.file.clone(), frame.line, frame.func.clone());
        }
    }
}
