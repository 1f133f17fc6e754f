//! Layouts of types by debug information: where values of a type hold which fields.
//!
//! Sources: DWARF 5 §5 (types), and the descriptions that rustc, GCC and Clang write: `DW_TAG_variant_part` for enums with
//! data, template parameters by name, `DW_TAG_inheritance` for base classes.

#![deny(missing_docs)]

mod block_name;
mod blocks;
mod coroutines;
mod cpp_name;
mod derived;
mod describe;
mod entries;
mod future_names;
mod hints;
mod index;
mod known_functions;
mod locals;
mod read;
mod units;
mod variables;
mod vtables;

pub use blocks::allocated_blocks;
pub use coroutines::{Coroutines, PollFunction, SourceLine, is_coroutine};
pub use hints::{may_describe_named_tasks, may_describe_tasks, may_name_tasks};
pub use known_functions::{KnownFunction, KnownFunctions};
pub use locals::{Local, LocalPlace, ReadMemory, StoppedFrame};
pub use stackglass_symbols::{FutureName, PolledFuture};

use foldhash::HashMap;
use foldhash::fast::FixedState;
use stackglass_debug_info::Options;
use stackglass_profile::recording::Module;
use stackglass_symbols::types::{is_short, short};
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

/// Index of a type in [`Layouts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TypeId(pub u32);

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Its full name as in debug information: `alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>`.
    pub name: Arc<str>,
    /// Size of a value in bytes; 0 if it is unknown.
    pub size: u64,
    /// What a value consists of.
    pub shape: Shape,
    /// Template arguments that are types, by name: `T`, `K`, `V`, `A`, `_Tp`.
    pub arguments: Vec<(Arc<str>, TypeId)>,
    /// Whether a value has parts that [`Layout::shape`] does not list: virtual base classes.
    pub partial: bool,
}

impl Layout {
    /// Its name as a programmer writes it: `Vec<String>`. It is made each time: few of all types are ever named.
    pub fn short_name(&self) -> String {
        short(&self.name)
    }

    /// Whether this is its name, full or short.
    pub fn is_called(&self, name: &str) -> bool {
        *self.name == *name || is_short(name, &self.name)
    }
}

/// What a value consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// No pointers: numbers, `bool`, `char`, C enumerations. Also types that are only declared.
    Plain,
    /// A pointer or reference. `Box`, `Rc` and others are structs with a pointer inside.
    Pointer {
        /// The type behind it; `None` for `void` and functions.
        target: Option<TypeId>,
    },
    /// Fields, base classes among them (their name is the name of the class).
    Struct(Vec<Field>),
    /// Elements without gaps.
    Array {
        /// Type of an element.
        element: TypeId,
        /// Their number; 0 for a C array without a bound at the end of a struct, which extends to the end of the block.
        count: u64,
    },
    /// A Rust enum with data.
    Enum {
        /// Where the discriminant lies: offset, size in bytes. `None` for a single variant.
        tag: Option<(u64, u64)>,
        /// The variants.
        variants: Vec<Variant>,
    },
    /// Fields that overlap, of which any may be valid.
    Union(Vec<Field>),
}

/// A field of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name: `left`, `__0`.
    pub name: Arc<str>,
    /// Bytes from the begin of the value.
    pub offset: u64,
    /// Its type.
    pub type_id: TypeId,
}

/// A variant of an enum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name.
    pub name: Arc<str>,
    /// Discriminants of this variant, as bit patterns of the tag's size. `None` for the variant of all other values.
    pub values: Option<Vec<std::ops::RangeInclusive<u128>>>,
    /// Its fields, by offsets in the whole value.
    pub fields: Vec<Field>,
}

/// A variable with static storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name with path: `app::CACHE`.
    pub name: Arc<str>,
    /// Address in the file; for thread-locals the offset in the module's thread-local storage.
    pub address: u64,
    /// Its type, or one of unknown shape if it has none.
    pub type_id: Option<TypeId>,
    /// Bytes.
    pub size: u64,
}

/// A vtable, or one part of a C++ class's vtable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vtable {
    /// Address in the file that pointers to the vtable hold. In C++ it is behind the pointer to type information.
    pub address: u64,
    /// The type of the values that have it: in Rust the one that became `dyn`.
    pub type_id: TypeId,
    /// Where the pointer to it lies in such a value. In Rust it lies beside the pointer to the value, and this is 0.
    pub offset: u64,
    /// Whether the type is a class of C++.
    pub of_class: bool,
}

/// What a block contains.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockType {
    /// One value.
    One(TypeId),
    /// Elements: as many as fit, or as many as the owner says.
    Elements(TypeId),
    /// A reference-counted slice: two counters, then elements.
    CountedElements(TypeId),
    /// The same, with the counters of an `Arc`.
    SharedElements(TypeId),
    /// Slots and control bytes of a hashbrown table; the type is that of a slot.
    Table(TypeId),
    /// Bytes without pointers.
    Bytes,
}

/// The variables and vtables of a module, each sorted by address.
#[derive(Clone, Debug, Default)]
pub struct ModuleData {
    /// Variables with static storage.
    pub statics: Vec<Variable>,
    /// Thread-local variables.
    pub thread_locals: Vec<Variable>,
    /// Vtables of types that are known.
    pub vtables: Vec<Vtable>,
}

/// What debug information and symbols tell of the types in some modules.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    types: Vec<Layout>,
    by_name: HashMap<Arc<str>, TypeId>,
    modules: Vec<ModuleData>,
    /// Types by hashes of their names in one spelling of C++.
    by_cpp_name: OnceLock<HashMap<u64, TypeId>>,
    coroutines: Coroutines,
    known_functions: Vec<KnownFunctions>,
    /// The modules, and how their files are found. Set with coroutines.
    sources: Option<Arc<(Vec<Module>, Options)>>,
    rust_version: Option<RustVersion>,
    /// The main program is written in Rust.
    is_rust: bool,
}

/// Version of a Rust compiler: major and minor number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RustVersion(pub u32, pub u32);

/// What is read besides the locals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Types, variables and vtables.
    Types,
    /// The same, and coroutines.
    Coroutines,
}

/// Hashes names.
const SPELLINGS: FixedState = FixedState::with_seed(0);

impl Layouts {
    /// Reads the types, variables and vtables of modules: the main program first, then its libraries. Files are found as
    /// by [`symbolize`](stackglass_symbols::symbolize()). A damaged or missing file has no types.
    pub fn read(modules: &[Module], options: &Options) -> Layouts {
        read::read(modules, options, &[], &|_, _| 0, Wanted::Types).0
    }

    /// The same, and for each of the frames the local variables that have a value there.
    pub fn read_with_locals(
        modules: &[Module],
        options: &Options,
        frames: &[StoppedFrame],
        memory: ReadMemory<'_>,
        wanted: Wanted,
    ) -> (Layouts, Vec<Vec<Local>>) {
        read::read(modules, options, frames, memory, wanted)
    }

    /// What debug information says of coroutines, if it was read.
    pub fn coroutines(&self) -> &Coroutines {
        &self.coroutines
    }

    /// Whether a type of an async function is among the types. With `debug = 1`, there are none.
    pub fn has_coroutines(&self) -> bool {
        self.by_name.keys().any(|name| is_coroutine(name))
    }

    /// The functions of a module whose effect is known, by the module's index in the list that was read. They are read with
    /// coroutines.
    pub fn known_functions(&self, module: usize) -> Option<&KnownFunctions> {
        self.known_functions.get(module)
    }

    /// The variables and vtables of a module, by its index in the list that was read.
    ///
    /// # Panics
    /// If there is no such module.
    pub fn module(&self, index: usize) -> &ModuleData {
        &self.modules[index]
    }

    /// The layout of a type.
    ///
    /// # Panics
    /// If the id is not from these layouts.
    pub fn get(&self, id: TypeId) -> &Layout {
        &self.types[id.0 as usize]
    }

    /// The version of the compiler, and so of the standard library, of the first module with Rust code. Private values of the
    /// standard library differ between versions.
    pub fn rust_version(&self) -> Option<RustVersion> {
        self.rust_version
    }

    /// Whether the main program has Rust code with debug information. The names of blocks then are those of Rust.
    pub fn is_rust(&self) -> bool {
        self.is_rust
    }

    /// Sets what [`Layouts::rust_version`] returns, and that the main program has such code.
    pub fn set_rust_version(&mut self, version: Option<RustVersion>) {
        self.rust_version = version;
        self.is_rust = version.is_some();
    }

    /// Number of types. Their ids are the numbers below it.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are no types.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The type with this full name.
    pub fn by_name(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The type with this full name, as any compiler or demangler of C++ writes it.
    pub(crate) fn by_cpp_name(&self, name: &str) -> Option<TypeId> {
        // Most names are spelled alike; in programs without C++, all are.
        self.by_name(name).or_else(|| {
            let hash = |name: &str| SPELLINGS.hash_one(cpp_name::uniform(name));
            let by_hash = self.by_cpp_name.get_or_init(|| {
                let mut by_hash = HashMap::default();
                for (name, id) in &self.by_name {
                    by_hash.entry(hash(name)).or_insert(*id);
                }
                by_hash
            });
            let found = by_hash.get(&hash(name)).copied();
            found.filter(|id| cpp_name::uniform(&self.get(*id).name) == cpp_name::uniform(name))
        })
    }

    /// Adds a type, or returns the one with the same name and layout.
    pub fn push(&mut self, layout: Layout) -> TypeId {
        if let Some(known) = self.by_name(&layout.name).filter(|known| *self.get(*known) == layout) {
            return known;
        }
        self.add(layout)
    }

    fn add(&mut self, layout: Layout) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        self.by_name.entry(layout.name.clone()).or_insert(id);
        self.types.push(layout);
        self.by_cpp_name.take();
        id
    }
}
