//! From layouts to the places of pointers.

use super::reference::Hold;
use super::slots::{Case, Compiled, Count, Counted, Kind, Op, Repeat, Slot, Switch};
use super::slots::{count, each_slot, have_lengths, holding, within};
use stackglass_layouts::{BlockType, Field, Layout, Layouts, Shape, TypeId, Variant};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Types within types deeper than this are damaged debug information.
const MAX_DEPTH: usize = 192;

/// Places of one type, at most. A type with more is incomplete.
const MAX_PLACES: usize = 4096;

/// The places of a container, if it is a known one.
pub(super) type Model = fn(&mut Compiler<'_>, TypeId, &Layout) -> Option<Compiled>;

/// Compiles types, each once.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub layouts: &'a Layouts,
    model: Model,
    done: HashMap<TypeId, Arc<Compiled>>,
    /// Types that are being compiled now: no value contains itself.
    open: HashSet<TypeId>,
}

impl<'a> Compiler<'a> {
    pub fn new(layouts: &'a Layouts, model: Model) -> Compiler<'a> {
        Compiler { layouts, model, done: HashMap::new(), open: HashSet::new() }
    }

    /// The places of a type.
    pub fn compile(&mut self, id: TypeId) -> Arc<Compiled> {
        if let Some(done) = self.done.get(&id) {
            return done.clone();
        }
        let layout = self.layouts.get(id);
        if self.open.len() >= MAX_DEPTH || !self.open.insert(id) {
            return Arc::new(Compiled { incomplete: true, size: layout.size, ..Compiled::default() });
        }
        let mut compiled = self.places(id, layout);
        self.open.remove(&id);
        compiled.size = layout.size;
        compiled.incomplete |= layout.partial;
        compiled.vptr = vptr(self.layouts, id);
        if count(&compiled.ops) > MAX_PLACES {
            compiled.ops.clear();
            compiled.incomplete = true;
        }
        compiled.has_lengths = have_lengths(&compiled.ops);
        let compiled = Arc::new(compiled);
        self.done.insert(id, compiled.clone());
        compiled
    }

    fn places(&mut self, id: TypeId, layout: &Layout) -> Compiled {
        match &layout.shape {
            // A type that is only declared has no size.
            Shape::Plain => Compiled { incomplete: is_declared(layout), ..Compiled::default() },
            Shape::Pointer { target } => {
                let slot = pointer(self.layouts, layout, *target);
                Compiled { ops: slot.map(Op::Slot).into_iter().collect(), ..Compiled::default() }
            }
            Shape::Struct(fields) => (self.model)(self, id, layout)
                .or_else(|| self.fat_pointer(layout, fields))
                .unwrap_or_else(|| self.fields(layout, fields)),
            Shape::Array { element, count } => self.array(layout, *element, *count),
            Shape::Enum { tag, variants } => self.variants(layout, *tag, variants),
            Shape::Union(fields) => self.union(layout, fields),
        }
    }

    /// The places of fields side by side.
    pub fn fields(&mut self, layout: &Layout, fields: &[Field]) -> Compiled {
        let (holding, incomplete) = self.holding(fields);
        let hide = is_library(&layout.name) && holding.len() == 1;
        let ops = (holding.iter())
            .flat_map(|(field, compiled)| {
                let name = if hide || self.is_base(field) { "" } else { displayed(&field.name) };
                within(name, field.offset, &compiled.ops)
            })
            .collect();
        Compiled { ops, incomplete, ..Compiled::default() }
    }

    /// The fields that hold pointers, and whether there may be others.
    fn holding<'f>(&mut self, fields: &'f [Field]) -> (Vec<(&'f Field, Arc<Compiled>)>, bool) {
        let mut incomplete = false;
        let mut holding = Vec::new();
        let mut places = 0;
        for field in fields.iter().filter(|field| !field.name.starts_with("_vptr")) {
            let compiled = self.compile(field.type_id);
            incomplete |= compiled.incomplete && compiled.size > 0;
            places += count(&compiled.ops);
            if places > MAX_PLACES {
                return (holding, true);
            }
            if !compiled.ops.is_empty() {
                holding.push((field, compiled));
            }
        }
        (holding, incomplete)
    }

    /// A pointer with a length or a vtable beside it.
    fn fat_pointer(&mut self, layout: &Layout, fields: &[Field]) -> Option<Compiled> {
        let [pointer, beside] = fields else { return None };
        let Shape::Pointer { target } = self.layouts.get(pointer.type_id).shape else { return None };
        let hold = if base(&layout.name) == "alloc::boxed::Box" { Hold::Owns } else { Hold::Refers };
        let name = &layout.name;
        let target_name = target.map_or("", |target| name_of(self.layouts, target));
        let text = name.ends_with(" str")
            || name.ends_with("&str")
            || name.starts_with("alloc::boxed::Box<str")
            || target_name.ends_with("Inner<str>")
            || ["std::path::Path", "std::ffi::os_str::OsStr"].contains(&target_name);
        let relative = |field: &Field| Some(field.offset.wrapping_sub(pointer.offset));
        let (contains, kind) = match (&*pointer.name, &*beside.name) {
            ("data_ptr", "length") => (
                target.and_then(|target| self.slice(target, text)),
                Kind::Slice { length: relative(beside)? },
            ),
            ("pointer", "vtable") => {
                let counted = match target.map(|target| base(name_of(self.layouts, target))) {
                    Some("alloc::rc::RcInner" | "alloc::rc::RcBox") => Counted::Rc,
                    Some("alloc::sync::ArcInner") => Counted::Arc,
                    _ => Counted::No,
                };
                (None, Kind::Dyn { vtable: relative(beside)?, counted })
            }
            _ => return None,
        };
        let slot = Slot { name: "".into(), base: pointer.offset, pointer: 0, hold, contains, text, kind };
        Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
    }

    /// What a slice consists of, by the target of its pointer.
    fn slice(&self, target: TypeId, text: bool) -> Option<BlockType> {
        let layout = self.layouts.get(target);
        match base(&layout.name) {
            "alloc::rc::RcInner" | "alloc::rc::RcBox" => {
                Some(BlockType::CountedElements(field(layout, "value")?.type_id))
            }
            "alloc::sync::ArcInner" => Some(BlockType::SharedElements(field(layout, "data")?.type_id)),
            _ if text => Some(BlockType::Bytes),
            _ => (layout.size > 0).then_some(BlockType::Elements(target)),
        }
    }

    fn array(&mut self, layout: &Layout, element: TypeId, length: u64) -> Compiled {
        let compiled = self.compile(element);
        // In C, an array without a bound extends to the end of the block. Rust has empty arrays.
        let length = if length == 0 && !layout.name.starts_with('[') { u64::MAX } else { length };
        let mut result =
            Compiled { incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() };
        if !compiled.ops.is_empty() && compiled.size > 0 && length > 0 {
            result.ops.push(Op::Repeat(Repeat {
                name: "".into(),
                offset: 0,
                stride: compiled.size,
                count: Count::Fixed(length),
                ops: compiled.ops.clone(),
            }));
        }
        result
    }

    fn variants(&mut self, layout: &Layout, tag: Option<(u64, u64)>, variants: &[Variant]) -> Compiled {
        let library = is_library(&layout.name);
        let mut incomplete = false;
        let mut places = 0;
        let compiled: Vec<Compiled> = (variants.iter())
            .map(|variant| {
                let mut compiled = self.variant(variant, library);
                places += count(&compiled.ops);
                if places > MAX_PLACES {
                    compiled = Compiled { incomplete: true, ..Compiled::default() };
                }
                incomplete |= compiled.incomplete;
                compiled
            })
            .collect();
        // The flavors of channels are not for users.
        let hide = library
            && (compiled.iter().filter(|variant| !variant.ops.is_empty()).count() == 1
                || base(&layout.name).ends_with("Flavor"));
        let mut default = Vec::new();
        let mut cases = Vec::new();
        for (variant, compiled) in variants.iter().zip(compiled) {
            let ops = if hide { compiled.ops } else { within(&variant.name, 0, &compiled.ops) };
            match &variant.values {
                None => default = ops,
                Some(values) => cases.push(Case { values: values.clone(), ops }),
            }
        }
        let mut result = Compiled { incomplete, ..Compiled::default() };
        let Some((tag, size)) = tag else {
            // One variant that is always valid.
            default.extend(cases.into_iter().flat_map(|case| case.ops));
            result.ops = default;
            return result;
        };
        let empty = default.is_empty() && cases.iter().all(|case| case.ops.is_empty());
        if size > 16 {
            result.incomplete |= !empty;
        } else if is_null_or_pointer(tag, &cases, &default) {
            result.ops = default;
        } else if !empty {
            result.ops.push(Op::Switch(Switch { tag, size, cases, default }));
        }
        result
    }

    fn variant(&mut self, variant: &Variant, library: bool) -> Compiled {
        let (holding, incomplete) = self.holding(&variant.fields);
        let hide = library && holding.len() == 1;
        let ops = (holding.iter())
            .flat_map(|(field, compiled)| {
                within(if hide { "" } else { displayed(&field.name) }, field.offset, &compiled.ops)
            })
            .collect();
        Compiled { ops, incomplete, ..Compiled::default() }
    }

    /// Fields of which any may be valid. In Rust, pointers are doubtful unless all fields agree on where they lie: what may be
    /// uninitialized is a union. In C, an address in a union is most likely a pointer.
    fn union(&mut self, layout: &Layout, fields: &[Field]) -> Compiled {
        if self.holding(fields).1 {
            return Compiled { incomplete: true, ..Compiled::default() };
        }
        let compiled: Vec<_> = fields.iter().map(|field| (field, self.compile(field.type_id))).collect();
        let places = |field: &Field, compiled: &Compiled| -> Option<Vec<u64>> {
            let place = |op: &Op| match op {
                Op::Slot(Slot { base, pointer, kind: Kind::Thin { .. }, .. }) => {
                    Some(base.wrapping_add(*pointer).wrapping_add(field.offset))
                }
                _ => None,
            };
            compiled.ops.iter().map(place).collect()
        };
        let mut all = compiled.iter().map(|(field, compiled)| places(field, compiled));
        let first = all.next().flatten();
        let agree = first.as_ref().is_some_and(|first| all.all(|other| other.as_ref() == Some(first)));
        if agree && let Some((field, first)) = compiled.first() {
            let mut ops = within(displayed(&field.name), field.offset, &first.ops);
            let alike = compiled.iter().all(|(_, other)| {
                let contains = |op: &Op| if let Op::Slot(slot) = op { slot.contains } else { None };
                other.ops.iter().map(contains).eq(first.ops.iter().map(contains))
            });
            if !alike {
                each_slot(&mut ops, &mut |slot| (slot.contains, slot.hold) = (None, Hold::Refers));
            }
            return Compiled { ops, ..Compiled::default() };
        }
        let hide = is_library(&layout.name);
        let ops = (compiled.iter())
            .flat_map(|(field, compiled)| {
                within(if hide { "" } else { displayed(&field.name) }, field.offset, &compiled.ops)
            })
            .collect();
        let is_rust = self.layouts.rust_version().is_some() && layout.name.contains("::");
        if is_rust || layout.name.starts_with("core::") {
            return Compiled { ops: holding(ops, Hold::Weak), ..Compiled::default() };
        }
        Compiled { ops: each_place_once(ops), ..Compiled::default() }
    }

    /// Whether a field is a base class of a C++ class.
    pub fn is_base(&self, field: &Field) -> bool {
        is_base(self.layouts, field)
    }
}

/// The pointers of a union of C: those at one place are one of unknown type.
fn each_place_once(mut ops: Vec<Op>) -> Vec<Op> {
    let mut places: HashMap<u64, u64> = HashMap::new();
    each_slot(&mut ops, &mut |slot| {
        *places.entry(slot.base.wrapping_add(slot.pointer)).or_default() += 1;
        slot.hold = Hold::Refers;
    });
    let mut seen = HashSet::new();
    ops.retain_mut(|op| {
        let Op::Slot(slot) = op else { return true };
        let place = slot.base.wrapping_add(slot.pointer);
        if !matches!(slot.kind, Kind::Thin { .. }) || places.get(&place) == Some(&1) {
            return true;
        }
        (slot.name, slot.contains, slot.kind) = ("".into(), None, Kind::Thin { vptr: None });
        seen.insert(place)
    });
    ops
}

/// Whether all that an enum tells is that its only pointer is not null.
fn is_null_or_pointer(tag: u64, cases: &[Case], default: &[Op]) -> bool {
    let null = |case: &Case| case.ops.is_empty() && case.values.iter().all(|range| *range.end() < 4096);
    let [Op::Slot(slot)] = default else { return false };
    cases.iter().all(null) && slot.base.wrapping_add(slot.pointer) == tag
}

/// The slot of a type that is a pointer. Functions are no blocks.
fn pointer(layouts: &Layouts, layout: &Layout, target: Option<TypeId>) -> Option<Slot> {
    let name = &*layout.name;
    if ["fn(", "fn (", "unsafe fn", "extern ", "unsafe extern "].iter().any(|start| name.starts_with(start))
        || name.contains("(*)")
        || layout.size != 8
    {
        return None;
    }
    let owns = base(name) == "alloc::boxed::Box";
    let contains = target.filter(|target| {
        let target = layouts.get(*target);
        // A pointer to bytes is a pointer to anything.
        owns || target.size > 1 || target.size == 1 && target.shape != Shape::Plain
    });
    let kind = Kind::Thin { vptr: target.and_then(|target| vptr(layouts, target)) };
    let hold = if owns { Hold::Owns } else { Hold::Refers };
    let contains = contains.map(BlockType::One);
    Some(Slot { name: "".into(), base: 0, pointer: 0, hold, contains, text: false, kind })
}

/// Where a C++ object holds the pointer to its vtable.
fn vptr(layouts: &Layouts, id: TypeId) -> Option<u64> {
    let mut id = id;
    let mut offset = 0u64;
    for _ in 0..MAX_DEPTH {
        let Shape::Struct(fields) = &layouts.get(id).shape else { return None };
        if let Some(vptr) = fields.iter().find(|field| field.name.starts_with("_vptr")) {
            return offset.checked_add(vptr.offset);
        }
        // A class shares the pointer of its first polymorphic base class, which may be virtual.
        let Some(base) = fields.iter().find(|field| field.offset == 0 && is_base(layouts, field)) else {
            return layouts.get(id).partial.then_some(offset);
        };
        offset = offset.checked_add(base.offset)?;
        id = base.type_id;
    }
    None
}

/// Whether a field is a base class.
fn is_base(layouts: &Layouts, field: &Field) -> bool {
    layouts.get(field.type_id).is_called(&field.name)
}

/// Whether nothing but the name of a type is known.
fn is_declared(layout: &Layout) -> bool {
    layout.size == 0 && !matches!(&*layout.name, "()" | "!" | "void")
}

/// The name of a type.
pub(super) fn name_of(layouts: &Layouts, id: TypeId) -> &str {
    &layouts.get(id).name
}

/// The field of a struct with this name.
pub(super) fn field<'l>(layout: &'l Layout, name: &str) -> Option<&'l Field> {
    let Shape::Struct(fields) = &layout.shape else { return None };
    fields.iter().find(|field| &*field.name == name)
}

/// The name of a type without its arguments; all of it if something follows them.
pub(super) fn base(name: &str) -> &str {
    let Some(start) = name.find('<').filter(|start| *start > 0) else { return name };
    let mut depth = 0usize;
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'<' => depth += 1,
            b'>' if bytes[at - 1] != b'-' => {
                depth -= 1;
                if depth == 0 {
                    return if at + 1 == bytes.len() { &name[..start] } else { name };
                }
            }
            _ => (),
        }
    }
    name
}

/// A field's name in source text. Fields of tuples have numbers.
fn displayed(name: &str) -> &str {
    name.strip_prefix("__").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or(name)
}

/// Whether a type is of a library whose fields are not for users.
fn is_library(name: &str) -> bool {
    const LIBRARIES: [&str; 12] = [
        "alloc::",
        "core::",
        "std::",
        "hashbrown::",
        "lock_api::",
        "parking_lot::",
        "indexmap::",
        "smallvec::",
        "dashmap::",
        "crossbeam_",
        "once_cell::",
        "__gnu_cxx::",
    ];
    LIBRARIES.iter().any(|library| name.starts_with(library))
}
