//! First pass: the types and variables that a unit describes, by offset, with hashes of their names and contents.
//!
//! Each unit describes the types that it uses, so most types are described many times. The hashes tell which descriptions
//! are of one type. Only one of them is read in the second pass.

use super::entries::{Entries, Entry, Head, Reference, Value};
use super::units::TypeUnit;
use super::{Wanted, variables};
use foldhash::fast::FixedState;
use foldhash::{HashMap, HashSet};
use gimli::DwTag;
use stackglass_debug_info::dwarf::names::has_paths;
use std::hash::BuildHasher;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Deepest nesting of entries that are read.
const DEEPEST: usize = 64;

/// Name of the variable that holds what an `.await` waits for.
const AWAITED: &[u8] = b"__awaitee";

/// Longest name of a type; types with longer names have no name. Services of web servers have names of 20 kB.
const LONGEST_NAME: usize = 256 << 10;

/// A type that a unit describes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Unit offset of its entry.
    pub offset: usize,
    /// Hash of its name; 0 if it has none.
    pub name: u64,
    /// Hash of what distinguishes it from other types, its name included.
    pub key: u64,
    /// Bytes of a value.
    pub size: u64,
    /// Whether this is only a declaration.
    pub declared: bool,
}

impl Found {
    /// Names a type that has no name.
    pub fn set_name(&mut self, hash: u64) {
        self.name = hash;
        self.key = HASH.hash_one((self.key, hash));
    }
}

/// A variable with an address.
#[derive(Clone, Debug)]
pub(super) struct FoundVariable {
    /// Its path, or its linkage name if it completes another entry.
    pub name: Name,
    pub place: variables::Place,
    pub a_type: Option<Reference>,
    /// The entry that it completes.
    pub origin: Option<Reference>,
}

/// The name of a variable.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Path(String),
    Linkage(String),
}

/// What a unit describes.
#[derive(Debug, Default)]
pub(super) struct UnitIndex {
    /// By offset.
    pub types: Vec<Found>,
    /// Names of types, by the hash of the name, except those that this thread has found before.
    pub names: Vec<(u64, Arc<str>)>,
    pub variables: Vec<FoundVariable>,
    /// Signatures of types without a name that a `typedef` may name, and the hash of that name.
    pub typedefs: Vec<(u64, u64)>,
    /// Functions that poll tasks: address and name.
    pub polls: Vec<(Range<u64>, String)>,
    /// Names of functions that wait for the end of a future.
    pub block_ons: Vec<String>,
    /// Functions of coroutines in implementations: path without the last part, and symbol.
    pub coroutines: Vec<(String, String)>,
    /// Variables that are awaited: type, number of the file, line.
    pub awaited: Vec<(Reference, u64, u64)>,
}

/// What remains of a number of bytes or entries that files of this size may lead to.
#[derive(Debug)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    pub fn new(amount: u64) -> Budget {
        Budget(AtomicU64::new(amount))
    }

    /// Takes an amount. If less remains, all later calls fail as well.
    pub fn take(&self, amount: usize) -> bool {
        let less = |remains: u64| remains.checked_sub(amount as u64);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if !taken {
            self.0.store(0, Ordering::Relaxed);
        }
        taken
    }
}

const HASH: FixedState = FixedState::with_seed(0x5717_6c61_7373);

/// Lists the types and variables of a unit. `known` has the hashes of names that this thread has found.
pub(super) fn index(
    number: usize,
    unit: &TypeUnit<'_, '_>,
    known: &mut HashSet<u64>,
    budget: &Budget,
    wanted: Wanted,
) -> UnitIndex {
    let mut found = UnitIndex::default();
    let Some(entries) = Entries::new(&unit.unit, unit.dwarf) else { return found };
    let language = unit.unit.language;
    let mut walk = Walk {
        number,
        entries,
        has_paths: has_paths(language),
        is_rust: language == Some(gimli::DW_LANG_Rust),
        wanted,
        budget,
        known,
        found: &mut found,
        open: Vec::new(),
        path: String::new(),
        scope: 0,
        anonymous: Vec::new(),
        declared: HashMap::default(),
    };
    walk.run();
    while !walk.open.is_empty() {
        walk.close();
    }
    found
}

/// An entry whose children the walk is in.
struct Open {
    /// Length of the path, and hash of the scope, outside of it.
    path: usize,
    scope: u64,
    /// The same, if the entry completes one with another path.
    outside: Option<(String, u64)>,
    /// The type that its members belong to, as an index into the types of the unit.
    a_type: Option<usize>,
    /// The path inside, if a declaration needs it.
    inside: Option<Rc<str>>,
}

/// A type that is declared and may be completed elsewhere in the unit.
#[derive(Clone)]
struct Declared<'data> {
    path: Rc<str>,
    scope: u64,
    name: Option<Value<'data>>,
}

struct Walk<'walk, 'data> {
    number: usize,
    entries: Entries<'walk, 'data>,
    has_paths: bool,
    is_rust: bool,
    wanted: Wanted,
    budget: &'walk Budget,
    known: &'walk mut HashSet<u64>,
    found: &'walk mut UnitIndex,
    open: Vec<Open>,
    path: String,
    scope: u64,
    /// Types without a name that a `typedef` may name: index and offset.
    anonymous: Vec<(usize, usize)>,
    /// Types that are declared, by offset.
    declared: HashMap<usize, Declared<'data>>,
}

impl<'data> Walk<'_, 'data> {
    /// Walks to the end of the unit or to the first damage.
    fn run(&mut self) -> Option<()> {
        let root = self.entries.head(self.entries.root())?;
        let mut at = self.entries.skip(root)?;
        if !root.has_children {
            return None;
        }
        loop {
            let head = self.entries.head(at)?;
            let Some(tag) = head.tag else {
                at = self.entries.skip(head)?;
                if self.open.is_empty() {
                    return None;
                }
                self.close();
                continue;
            };
            at = self.visit(head, tag)?;
        }
    }

    /// Reads an entry, and returns the offset of the next one to visit.
    fn visit(&mut self, head: Head, tag: DwTag) -> Option<usize> {
        match tag {
            gimli::DW_TAG_namespace | gimli::DW_TAG_module => {
                let entry = self.entries.entry(head)?;
                self.enter(head, &entry, None)
            }
            gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_interface_type => {
                let mut entry = self.entries.entry(head)?;
                if entry.declaration {
                    self.declare(head, &entry);
                }
                let declared = match entry.origin {
                    Some(Reference::Unit(origin)) => self.declared.get(&origin).cloned(),
                    _ => None,
                };
                let Some(declared) = declared else {
                    let a_type = self.add(head, &entry);
                    return self.enter(head, &entry, a_type);
                };
                // The path is that of the declaration.
                entry.name = declared.name;
                let path = std::mem::replace(&mut self.path, declared.path.to_string());
                let scope = std::mem::replace(&mut self.scope, declared.scope);
                let a_type = self.add(head, &entry);
                let depth = self.open.len();
                let next = self.enter(head, &entry, a_type);
                match self.open.get_mut(depth) {
                    Some(open) => open.outside = Some((path, scope)),
                    None => (self.path, self.scope) = (path, scope),
                }
                next
            }
            gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_base_type
            | gimli::DW_TAG_unspecified_type
            | gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let entry = self.entries.entry(head)?;
                if entry.name.is_some() || tag == gimli::DW_TAG_enumeration_type {
                    self.add(head, &entry);
                }
                self.entries.skip_children(head, entry.end)
            }
            gimli::DW_TAG_typedef => {
                let entry = self.entries.entry(head)?;
                self.name_anonymous(&entry);
                self.entries.skip_children(head, entry.end)
            }
            gimli::DW_TAG_member => {
                let entry = self.entries.entry(head)?;
                self.add_member(&entry);
                self.entries.skip_children(head, entry.end)
            }
            gimli::DW_TAG_variant_part | gimli::DW_TAG_variant => {
                let after = self.entries.skip(head)?;
                let a_type = self.open.last().and_then(|open| open.a_type);
                self.descend(head, after, a_type)
            }
            gimli::DW_TAG_variable => {
                let entry = self.entries.entry(head)?;
                self.add_variable(&entry);
                self.entries.skip_children(head, entry.end)
            }
            gimli::DW_TAG_subprogram if !self.is_rust => {
                let entry = self.entries.entry(head)?;
                // Types of templates' arguments are elsewhere; declarations have no more.
                if entry.declaration || self.open.len() >= DEEPEST {
                    return self.entries.skip_children(head, entry.end);
                }
                let mut named = entry;
                for _ in 0..4 {
                    let Some(Reference::Unit(origin)) = named.origin.filter(|_| named.name.is_none()) else {
                        break;
                    };
                    let Some(origin) = self.entries.read(origin) else { break };
                    (named.name, named.origin) = (origin.name, origin.origin);
                }
                self.enter(head, &named, None)
            }
            gimli::DW_TAG_subprogram if self.wanted == Wanted::Coroutines => self.rust_function(head),
            gimli::DW_TAG_lexical_block if !self.is_rust => {
                let after = self.entries.skip(head)?;
                self.descend(head, after, None)
            }
            _ => {
                let after = self.entries.skip(head)?;
                self.entries.skip_children(head, after)
            }
        }
    }

    /// Looks for what concerns coroutines in a function of Rust.
    fn rust_function(&mut self, head: Head) -> Option<usize> {
        let entry = self.entries.entry(head)?;
        let mut name = self.entries.text(entry.name);
        // A function that is inlined somewhere, too, has its name in another entry; that of a method is in its declaration.
        let mut origin = entry.origin;
        for _ in 0..2 {
            if let (true, Some(Reference::Unit(at))) = (name.is_empty(), origin)
                && let Some(other) = self.entries.read(at)
            {
                (name, origin) = (self.entries.text(other.name), other.origin);
            }
        }
        if name.starts_with(b"poll<")
            && self.budget.take(name.len())
            && let Some(range) = self.entries.code(head).ranges.first()
        {
            self.found.polls.push((range.clone(), String::from_utf8_lossy(name).into_owned()));
        }
        if name.starts_with(b"block_on<") && self.budget.take(name.len()) {
            let name = String::from_utf8_lossy(name).into_owned();
            if !self.found.block_ons.contains(&name) {
                self.found.block_ons.push(name);
            }
        }
        if !name.starts_with(b"{async_") || !head.has_children {
            return self.entries.skip_children(head, entry.end);
        }
        let symbol = self.entries.text(entry.linkage_name);
        if self.path.contains("{impl#") && self.budget.take(self.path.len() + symbol.len()) {
            let symbol = String::from_utf8_lossy(symbol).into_owned();
            self.found.coroutines.push((self.path.clone(), symbol));
        }
        let mut at = entry.end;
        let mut depth = 1usize;
        while depth > 0 {
            let head = self.entries.head(at)?;
            at = self.entries.skip(head)?;
            match head.tag {
                None => depth -= 1,
                Some(tag) => {
                    depth += usize::from(head.has_children);
                    if tag == gimli::DW_TAG_variable {
                        let entry = self.entries.entry(head)?;
                        if self.entries.text(entry.name) == AWAITED
                            && let Some(a_type) = entry.a_type
                        {
                            self.found.awaited.push((a_type, entry.file, entry.line));
                        }
                    }
                }
            }
        }
        Some(at)
    }

    /// Goes to the children of an entry that is part of their paths.
    fn enter(&mut self, head: Head, entry: &Entry<'data>, a_type: Option<usize>) -> Option<usize> {
        let (path, scope) = (self.path.len(), self.scope);
        if head.has_children && self.open.len() < DEEPEST {
            if self.has_paths || entry.tag == gimli::DW_TAG_subprogram {
                self.scope = self.push(entry);
            }
            self.open.push(Open { path, scope, outside: None, a_type, inside: None });
            return Some(entry.end);
        }
        self.entries.skip_children(head, entry.end)
    }

    fn descend(&mut self, head: Head, after: usize, a_type: Option<usize>) -> Option<usize> {
        if !head.has_children || self.open.len() >= DEEPEST {
            return self.entries.skip_children(head, after);
        }
        let (path, scope) = (self.path.len(), self.scope);
        self.open.push(Open { path, scope, outside: None, a_type, inside: None });
        Some(after)
    }

    /// Adds a name to the path, and returns the hash of the path.
    fn push(&mut self, entry: &Entry<'data>) -> u64 {
        let name = self.entries.text(entry.name);
        if !self.path.is_empty() {
            self.path.push_str("::");
        }
        if name.is_empty() {
            self.path.push_str("(anonymous namespace)");
            // Each file has its own.
            return HASH.hash_one((self.scope, self.number));
        }
        let hash = HASH.hash_one((self.scope, name));
        if self.path.len() + name.len() <= LONGEST_NAME {
            self.path.push_str(&String::from_utf8_lossy(name));
        } else {
            self.path.push('…');
        }
        hash
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        match open.outside {
            Some(outside) => (self.path, self.scope) = outside,
            None => {
                self.path.truncate(open.path);
                self.scope = open.scope;
            }
        }
    }

    /// Keeps the path of a declaration.
    fn declare(&mut self, head: Head, entry: &Entry<'data>) {
        let path = match self.open.last_mut() {
            None => Rc::default(),
            Some(open) => match &open.inside {
                Some(path) => path.clone(),
                None if self.budget.take(self.path.len()) => {
                    open.inside.insert(Rc::from(&*self.path)).clone()
                }
                None => return,
            },
        };
        self.declared.insert(head.offset, Declared { path, scope: self.scope, name: entry.name });
    }

    /// Adds a type, and returns its index. An entry with a signature refers to a type; it
    /// is not added.
    fn add(&mut self, head: Head, entry: &Entry<'data>) -> Option<usize> {
        if entry.signature.is_some() || entry.declaration && entry.name.is_none() {
            return None;
        }
        let index = self.found.types.len();
        let offset = head.offset;
        let size = entry.byte_size.unwrap_or(match entry.tag {
            // Rust's `Box` and references are named pointers without a size.
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => self.entries.unit().encoding().address_size.into(),
            _ => 0,
        });
        let name = self.entries.text(entry.name);
        let mut found = Found { offset, name: 0, key: 0, size, declared: entry.declaration };
        if name.is_empty() {
            // Names of members follow.
            found.key = HASH.hash_one((self.scope, entry.tag.0, size, entry.line));
            self.anonymous.push((index, offset));
        } else {
            found.name = HASH.hash_one((self.scope, name));
            let line = if self.has_paths { 0 } else { entry.line };
            found.key = HASH.hash_one((found.name, entry.tag.0, size, line));
            self.add_name(found.name, name);
        }
        self.found.types.push(found);
        Some(index)
    }

    fn add_name(&mut self, hash: u64, name: &[u8]) {
        let length = self.path.len() + name.len() + 2;
        if length <= LONGEST_NAME && !self.known.contains(&hash) && self.budget.take(length) {
            self.known.insert(hash);
            let name = String::from_utf8_lossy(name);
            let separator = if self.path.is_empty() { "" } else { "::" };
            self.found.names.push((hash, format!("{}{separator}{name}", self.path).into()));
        }
    }

    /// Adds a member to what distinguishes its type.
    fn add_member(&mut self, entry: &Entry<'data>) {
        let Some(index) = self.open.last().and_then(|open| open.a_type) else { return };
        let offset = entry.offset(self.entries.unit().encoding());
        let name = self.entries.text(entry.name);
        let known = &mut self.found.types[index];
        if !entry.external && !entry.declaration {
            known.key = HASH.hash_one((known.key, name, offset));
        }
    }

    /// `typedef struct { … } Name;`
    fn name_anonymous(&mut self, entry: &Entry<'data>) {
        if let Some(Reference::Signature(signature)) = entry.a_type {
            let name = self.entries.text(entry.name);
            let hash = HASH.hash_one((self.scope, name));
            self.add_name(hash, name);
            self.found.typedefs.push((signature, hash));
        }
        let Some(Reference::Unit(target)) = entry.a_type else { return };
        let Ok(at) = self.anonymous.binary_search_by_key(&target, |(_, offset)| *offset) else { return };
        let found = &mut self.found.types[self.anonymous[at].0];
        let name = self.entries.text(entry.name);
        if found.name == 0 && !name.is_empty() {
            let hash = HASH.hash_one((self.scope, name));
            found.set_name(hash);
            self.add_name(hash, name);
        }
    }

    fn add_variable(&mut self, entry: &Entry<'data>) {
        let Some(place) = variables::place(entry, self.entries.unit()) else { return };
        let linkage = self.entries.text(entry.linkage_name);
        let name = self.entries.text(entry.name);
        let name = if name.is_empty() {
            Name::Linkage(String::from_utf8_lossy(linkage).into_owned())
        } else {
            let separator = if self.path.is_empty() { "" } else { "::" };
            Name::Path(format!("{}{separator}{}", self.path, String::from_utf8_lossy(name)))
        };
        let (Name::Path(text) | Name::Linkage(text)) = &name;
        if text.len() <= LONGEST_NAME && self.budget.take(text.len()) {
            let variable = FoundVariable { name, place, a_type: entry.a_type, origin: entry.origin };
            self.found.variables.push(variable);
        }
    }
}
