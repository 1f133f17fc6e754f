//! Names of tasks where debug information has none: by symbols, and by what the code of the functions that poll says.

use super::polling::PollFunctions;
use super::root_names::Kind;
use crate::names;
use crate::process::Process;
use crate::values::Values;
use crate::walker;
use foldhash::{HashMap, HashMapExt, HashSet};
use stackglass_layouts::{FutureName, PolledFuture};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Longest path of a source file.
const LONGEST_PATH: u64 = 4096;
/// Offset of the line in `core::panic::Location`, behind the path and its length.
const LINE: u64 = 16;

/// What symbols say of kinds of tasks.
pub(super) struct SymbolNames<'p, 'a> {
    process: &'p Process<'a>,
    values: &'p Values<'a>,
    /// By the address of the function that polls.
    of_polls: HashMap<u64, PolledFuture>,
    /// Futures in boxes, by the address of their vtable.
    boxed: RefCell<HashMap<u64, Option<Arc<str>>>>,
}

impl<'p, 'a> SymbolNames<'p, 'a> {
    /// Reads what is said of these kinds, as far as debug information does not describe their functions.
    pub fn of<'k>(
        process: &'p Process<'a>,
        values: &'p Values<'a>,
        kinds: impl Iterator<Item = &'k Kind>,
    ) -> SymbolNames<'p, 'a> {
        let undescribed = kinds.filter(|kind| !kind.is_described);
        let wanted: BTreeSet<(usize, u64)> = undescribed.map(|kind| (kind.module, kind.poll)).collect();
        let mut of_polls = HashMap::new();
        for (number, module) in process.modules.iter().enumerate() {
            let in_file = |poll: &u64| poll.wrapping_sub(module.bias());
            let polls: Vec<u64> =
                wanted.iter().filter(|(module, _)| *module == number).map(|(_, poll)| *poll).collect();
            if !polls.is_empty() {
                let addresses: Vec<u64> = polls.iter().map(in_file).collect();
                of_polls.extend(polls.into_iter().zip(process.layouts.polled_futures(number, &addresses)));
            }
        }
        SymbolNames { process, values, of_polls, boxed: RefCell::default() }
    }

    /// Whether it is no task, but a worker of a runtime.
    pub fn is_worker(&self, kind: &Kind) -> bool {
        self.of_polls.get(&kind.poll).is_some_and(|polled| polled.is_worker)
    }

    /// The functions that poll tasks of each kind, by the address of the first.
    pub fn functions(&self) -> PollFunctions {
        let bias = |poll: u64| {
            let module = self.process.modules.iter().find(|module| module.module.range().contains(&poll));
            module.map_or(0, |module| module.bias())
        };
        let in_process = |(poll, polled): (&u64, &PolledFuture)| {
            let bias = bias(*poll);
            let moved = |range: &Range<u64>| range.start.wrapping_add(bias)..range.end.wrapping_add(bias);
            (*poll, polled.functions.iter().map(moved).collect())
        };
        self.of_polls.iter().map(in_process).collect()
    }

    /// The name of the task with a header at an address.
    pub fn name(&self, kind: &Kind, header: u64) -> Option<Arc<str>> {
        let in_box = |is_boxed: bool| is_boxed.then(|| self.in_box(kind, header)).flatten();
        if let Some(name) = &kind.name {
            return in_box(kind.is_boxed).or_else(|| Some(name.clone()));
        }
        match &self.of_polls.get(&kind.poll)?.name {
            FutureName::Unknown => None,
            FutureName::Function(name) => Some(name.clone()),
            FutureName::Places(places) => self.written_at(kind, places),
            FutureName::Boxed => in_box(true),
        }
    }

    /// The future in a box: the task has the address of its vtable.
    fn in_box(&self, kind: &Kind, header: u64) -> Option<Arc<str>> {
        let vtable = self.values.pages.word(kind.future(self.values, header)?.checked_add(8)?)?;
        let mut boxed = self.boxed.borrow_mut();
        let of_symbols = || walker::named_by_symbols(self.values, self.process.modules, vtable);
        boxed.entry(vtable).or_insert_with(of_symbols).clone()
    }

    /// A coroutine by the place where it is written, if all of these are the same.
    fn written_at(&self, kind: &Kind, places: &[u64]) -> Option<Arc<str>> {
        let bias = self.process.modules.get(kind.module)?.bias();
        let texts: Option<HashSet<String>> =
            places.iter().map(|place| self.place(place.wrapping_add(bias))).collect();
        let texts = texts.filter(|texts| texts.len() == 1)?;
        texts.into_iter().next().map(|place| format!("{{async at {place}}}").into())
    }

    /// The file and line of a `core::panic::Location`.
    fn place(&self, address: u64) -> Option<String> {
        let pages = &self.values.pages;
        let (path, length) = (pages.word(address)?, pages.word(address.checked_add(8)?)?);
        if length == 0 || length > LONGEST_PATH {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        pages.read(path, &mut bytes)?;
        let line = pages.word(address.checked_add(LINE)?)? as u32;
        Some(format!("{}:{line}", names::file_in_crate(std::str::from_utf8(&bytes).ok()?)))
    }
}
