//! What is known of the futures of a process, whichever of them is followed: types, vtables, names and lines.

use crate::futures::{Form, Futures, form};
use crate::needs::Kind;
use crate::task_headers::Headers;
use crate::values::{Value, Values};
use crate::{joins, names};
use foldhash::HashMap;
use stackglass_layouts::{Shape, TypeId, is_coroutine};
use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::runtimes::{is_generic, tokio};
use std::cell::RefCell;
use std::sync::Arc;

/// Name of the field of a suspended coroutine that holds what it awaits.
pub(crate) const AWAITED: &str = "__awaitee";

/// What walks need.
pub(crate) struct Walker<'a> {
    pub values: &'a Values<'a>,
    pub types: &'a Futures<'a>,
    /// Types by the address of their vtable, sorted.
    pub vtables: &'a [(u64, TypeId)],
    pub headers: Headers,
    /// Modules whose symbols name what no type describes.
    modules: &'a [LoadedModule],
    /// Names of futures by their vtables.
    by_symbol: RefCell<HashMap<u64, Option<Arc<str>>>>,
    /// Functions of coroutines, and types of leaves without their arguments, by type.
    names: RefCell<HashMap<TypeId, Arc<str>>>,
}

impl<'a> Walker<'a> {
    /// Nothing is walked yet.
    pub fn new(
        values: &'a Values<'a>,
        types: &'a Futures<'a>,
        vtables: &'a [(u64, TypeId)],
        headers: Headers,
    ) -> Walker<'a> {
        Walker {
            values,
            types,
            vtables,
            headers,
            modules: &[],
            by_symbol: RefCell::default(),
            names: RefCell::default(),
        }
    }

    /// Names futures whose types are not known by the symbols of these modules.
    pub fn with_symbols_of(self, modules: &'a [LoadedModule]) -> Walker<'a> {
        Walker { modules, ..self }
    }

    /// What a frame of a future is called.
    pub fn name(&self, future: TypeId) -> Arc<str> {
        let name = || match &*self.values.layout(future).name {
            name if is_coroutine(name) => names::function(name, self.values.layouts.coroutines()),
            name => names::without_arguments(name).into(),
        };
        self.names.borrow_mut().entry(future).or_insert_with(name).clone()
    }

    /// The line in which a coroutine is suspended, by the index of its state.
    pub fn line(&self, coroutine: Value, state: usize) -> Option<(Arc<str>, u32)> {
        let Shape::Enum { variants, .. } = &self.values.layout(coroutine.type_id).shape else { return None };
        let awaited = variants.get(state)?.fields.iter().find(|field| &*field.name == AWAITED);
        let coroutines = self.values.layouts.coroutines();
        let mut line = coroutines.line(coroutine.type_id, state);
        // The body of a macro is in another file.
        if let (Some(field), Some(own), Some(found)) = (awaited, coroutines.line(coroutine.type_id, 0), line)
            && own.file != found.file
        {
            line = coroutines.macro_call(field.type_id).or(line);
        }
        line.map(|line| (line.file.clone(), line.line))
    }

    /// How a coroutine waits for its branches, if it is suspended in the code of a macro.
    pub fn macro_kind(&self, coroutine: Value, state: usize) -> Option<Kind> {
        let line = self.values.layouts.coroutines().line(coroutine.type_id, state)?;
        joins::of_macro(&line.file)
    }

    /// The future in a `Pin<Box<_>>`, as far as its type is known. `None` for all others.
    pub fn boxed(&self, mut future: Value) -> Option<Value> {
        let mut boxes = 0;
        while is_box(self.values.name(future)) && boxes < 8 {
            future = match form(self.values.layouts, future.type_id) {
                Form::Dynamic => self.dynamic(future)?,
                _ => self.values.target(future)?,
            };
            boxes += 1;
        }
        (boxes > 0).then_some(future)
    }

    /// The type and the address of a value behind a `dyn` pointer.
    pub fn dynamic(&self, pointer: Value) -> Option<Value> {
        let Shape::Struct(fields) = &self.values.layout(pointer.type_id).shape else { return None };
        let vtable = self.values.word(self.values.field(pointer, "vtable")?)?;
        let data = fields.iter().find(|field| &*field.name != "vtable")?;
        let address = self.values.pages.word(pointer.address.checked_add(data.offset)?)?;
        let at = self.vtables.binary_search_by_key(&vtable, |(address, _)| *address).ok()?;
        Some(Value { type_id: self.vtables[at].1, address })
    }
}

/// Slots of the vtable of a future: the function that drops it, then its size and alignment, then the function that polls it.
const DROP: u64 = 0;
const POLL: u64 = 24;
/// Most vtables whose functions are looked up in symbols.
const MOST_NAMED: usize = 100;

impl Walker<'_> {
    /// The name of a future behind a `dyn` pointer whose type is not known, by the symbols of the functions in its vtable.
    pub fn name_by_symbols(&self, pointer: Value) -> Option<Arc<str>> {
        let vtable = self.values.word(self.values.field(pointer, "vtable")?)?;
        let mut known = self.by_symbol.borrow_mut();
        match known.get(&vtable) {
            Some(name) => name.clone(),
            None if known.len() >= MOST_NAMED => None,
            None => {
                let name = named_by_symbols(self.values, self.modules, vtable);
                known.insert(vtable, name.clone());
                name
            }
        }
    }
}

/// The name of the future with this vtable, by the symbols of its functions.
pub(crate) fn named_by_symbols(
    values: &Values<'_>,
    modules: &[LoadedModule],
    vtable: u64,
) -> Option<Arc<str>> {
    let contains = |module: &LoadedModule, address| module.module.range().contains(&address);
    let number = modules.iter().position(|module| contains(module, vtable))?;
    let module = &modules[number];
    let word = |offset| values.pages.word(vtable.checked_add(offset)?);
    let in_file = |address: u64| address.wrapping_sub(module.bias());
    let (drop, poll) = (word(DROP)?, word(POLL).filter(|poll| contains(module, *poll))?);
    let drop = (drop != 0).then(|| in_file(drop));
    values.layouts.future_of_functions(number, drop, in_file(poll))
}

/// Whether a type with this name only holds one other: a box, a pin.
pub(crate) fn is_box(name: &str) -> bool {
    name.starts_with("core::pin::Pin<")
        || name.starts_with("alloc::boxed::Box<")
        || is_generic(name, tokio::COOP)
        || name.starts_with("core::mem::manually_drop::ManuallyDrop<")
}
