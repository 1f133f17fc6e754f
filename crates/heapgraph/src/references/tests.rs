//! Hand-made layouts and memory.

mod lock_free;

use super::*;
use stackglass_layouts::{Field, Layout, RustVersion, Shape, Variant};
use stackglass_process_view::core_image::{CoreImage, Memory};

/// No memory beyond the bytes of the value.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

fn image() -> CoreImage {
    CoreImage {
        pid: 1,
        executable: String::new(),
        mappings: Vec::new(),
        threads: Vec::new(),
        memory: Box::new(Nothing),
    }
}

/// Types under construction.
struct Types {
    layouts: Layouts,
    count: u32,
}

impl Types {
    fn new() -> Types {
        Types { layouts: Layouts::default(), count: 0 }
    }

    fn push(&mut self, name: &str, size: u64, shape: Shape, arguments: &[(&str, TypeId)]) -> TypeId {
        let id = self.layouts.push(Layout {
            name: name.into(),
            size,
            shape,
            arguments: arguments.iter().map(|(name, id)| ((*name).into(), *id)).collect(),
            partial: false,
        });
        self.count = self.count.max(id.0 + 1);
        id
    }

    /// The id of the type that is pushed next.
    fn next(&self) -> TypeId {
        TypeId(self.count)
    }

    fn plain(&mut self, name: &str, size: u64) -> TypeId {
        self.push(name, size, Shape::Plain, &[])
    }

    fn word(&mut self) -> TypeId {
        self.plain("usize", 8)
    }

    fn pointer(&mut self, name: &str, target: TypeId) -> TypeId {
        self.push(name, 8, Shape::Pointer { target: Some(target) }, &[])
    }

    fn structure(&mut self, name: &str, size: u64, fields: &[(&str, u64, TypeId)]) -> TypeId {
        self.push(name, size, Shape::Struct(list(fields)), &[])
    }

    fn generic(
        &mut self,
        name: &str,
        size: u64,
        fields: &[(&str, u64, TypeId)],
        arguments: &[(&str, TypeId)],
    ) -> TypeId {
        self.push(name, size, Shape::Struct(list(fields)), arguments)
    }

    fn array(&mut self, name: &str, element: TypeId, count: u64) -> TypeId {
        let size = self.layouts.get(element).size * count;
        self.push(name, size, Shape::Array { element, count }, &[])
    }

    /// `Option` of something that begins with a pointer.
    fn option(&mut self, name: &str, of: TypeId) -> TypeId {
        let some = Variant { name: "Some".into(), values: None, fields: list(&[("__0", 0, of)]) };
        let none = Variant { name: "None".into(), values: Some(vec![0..=0]), fields: Vec::new() };
        let size = self.layouts.get(of).size;
        let shape = Shape::Enum { tag: Some((0, 8)), variants: vec![none, some] };
        self.push(&format!("core::option::Option<{name}>"), size, shape, &[("T", of)])
    }

    /// `Vec` of elements, as rustc 1.95 lays it out.
    fn vec(&mut self, name: &str, element: TypeId) -> TypeId {
        let (raw, word) = (self.raw_vec(name, element), self.word());
        let name = format!("alloc::vec::Vec<{name}, alloc::alloc::Global>");
        self.generic(&name, 24, &[("buf", 0, raw), ("len", 16, word)], &[("T", element)])
    }

    fn raw_vec(&mut self, name: &str, element: TypeId) -> TypeId {
        let byte = self.plain("u8", 1);
        let word = self.word();
        let raw = self.pointer("*mut u8", byte);
        let non_null = self.structure("core::ptr::non_null::NonNull<u8>", 8, &[("pointer", 0, raw)]);
        let unique = self.structure("core::ptr::unique::Unique<u8>", 8, &[("pointer", 0, non_null)]);
        let capacity = self.structure("core::num::niche_types::UsizeNoHighBit", 8, &[("__0", 0, word)]);
        let inner = self.structure(
            "alloc::raw_vec::RawVecInner<alloc::alloc::Global>",
            16,
            &[("ptr", 8, unique), ("cap", 0, capacity)],
        );
        let name = format!("alloc::raw_vec::RawVec<{name}, alloc::alloc::Global>");
        self.generic(&name, 16, &[("inner", 0, inner)], &[("T", element)])
    }

    fn boxed(&mut self, name: &str, target: TypeId) -> TypeId {
        self.pointer(&format!("alloc::boxed::Box<{name}, alloc::alloc::Global>"), target)
    }

    fn maybe_uninit(&mut self, name: &str, value: TypeId) -> TypeId {
        let size = self.layouts.get(value).size;
        let unit = self.plain("()", 0);
        let manually = self.structure(
            &format!("core::mem::manually_drop::ManuallyDrop<{name}>"),
            size,
            &[("value", 0, value)],
        );
        let fields = list(&[("uninit", 0, unit), ("value", 0, manually)]);
        let name = format!("core::mem::maybe_uninit::MaybeUninit<{name}>");
        self.push(&name, size, Shape::Union(fields), &[("T", value)])
    }
}

fn list(fields: &[(&str, u64, TypeId)]) -> Vec<Field> {
    let field = |&(name, offset, type_id): &(&str, u64, TypeId)| Field { name: name.into(), offset, type_id };
    fields.iter().map(field).collect()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A reference in one line: name, target in hexadecimal, how it is held, elements.
fn line(reference: Reference<'_>) -> String {
    let name = match reference.name {
        EdgeName::Field(name) => name.to_owned(),
        EdgeName::Index(index) if reference.within.is_empty() => format!("[{index}]"),
        EdgeName::Index(index) => format!("[{index}].{}", reference.within),
    };
    let elements = reference.elements.map(|elements| format!(" {elements}")).unwrap_or_default();
    format!("{name} {:x} {:?}{elements}", reference.target, reference.hold)
}

fn value(types: &Types, id: TypeId, bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut each = |reference: Reference<'_>| lines.push(line(reference));
    References::new(&types.layouts).of_value(id, 0x10000, bytes, &image(), &mut each);
    lines
}

fn block(types: &Types, contains: BlockType, extent: Extent, bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut each = |reference: Reference<'_>| lines.push(line(reference));
    References::new(&types.layouts).of_block(contains, extent, 0x10000, bytes, &image(), &mut each);
    lines
}

fn all() -> Extent {
    Extent::default()
}

#[test]
fn fields_of_structs_within_structs_are_joined() {
    let mut types = Types::new();
    let word = types.word();
    let node = TypeId(types.next().0 + 4);
    let boxed = types.boxed("app::Node", node);
    let left = types.option("alloc::boxed::Box<app::Node>", boxed);
    let shared = types.pointer("&app::Node", node);
    let pair = types.structure("(usize, &app::Node)", 16, &[("__0", 0, word), ("__1", 8, shared)]);
    let made = types.structure("app::Node", 24, &[("left", 0, left), ("pair", 8, pair)]);
    assert_eq!(made, node);
    let bytes = words(&[0xa000, 7, 0xb000]);
    assert_eq!(value(&types, node, &bytes), ["left a000 Owns", "pair.1 b000 Refers"]);
    assert_eq!(value(&types, node, &words(&[0, 0xb000, 0])), Vec::<String>::new());
    // Truncated memory has the pointers that it has.
    assert_eq!(value(&types, node, &bytes[..12]), ["left a000 Owns"]);
    assert_eq!(block(&types, BlockType::One(left), all(), &words(&[0xa000])), ["* a000 Owns"]);
}

#[test]
fn a_vec_owns_as_many_elements_as_it_has() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let vec = types.vec("Box<usize>", boxed);
    let app = types.structure("app::App", 32, &[("id", 0, word), ("items", 8, vec)]);
    assert_eq!(value(&types, app, &words(&[9, 4, 0xa000, 3])), ["items a000 Owns 3"]);
    // Without capacity the pointer is dangling, with a length above the capacity it is damaged.
    assert_eq!(value(&types, app, &words(&[9, 0, 0xa000, 0])), Vec::<String>::new());
    assert_eq!(value(&types, app, &words(&[9, 4, 0xa000, 5])), ["items a000 Owns"]);
    let bytes = words(&[0xb000, 0xc000, 0xd000, 0xe000]);
    let elements = BlockType::Elements(boxed);
    assert_eq!(block(&types, elements, Some(2).into(), &bytes), ["[0] b000 Owns", "[1] c000 Owns"]);
    assert_eq!(block(&types, elements, all(), &bytes).len(), 4);
    let mut references = References::new(&types.layouts);
    let mut found = Vec::new();
    let bytes = words(&[9, 4, 0xa000, 3]);
    references.of_value(app, 0, &bytes, &image(), &mut |reference| {
        found.push((reference.contains, reference.usage));
    });
    assert_eq!(found, [(Some(elements), Some(Usage { used: 3, capacity: 4 }))]);
    assert_eq!(references.pointers(BlockType::One(word)), Pointers::None);
    assert_eq!(references.pointers(elements), Pointers::Listed);
}

#[test]
fn the_ring_of_a_deque_wraps() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let raw = types.raw_vec("Box<usize>", boxed);
    let name = "alloc::collections::vec_deque::VecDeque<Box<usize>, alloc::alloc::Global>";
    let fields = [("head", 16, word), ("len", 24, word), ("buf", 0, raw)];
    let deque = types.generic(name, 32, &fields, &[("T", boxed)]);
    let mut extent = all();
    let bytes = words(&[4, 0xa000, 3, 2]);
    References::new(&types.layouts)
        .of_value(deque, 0, &bytes, &image(), &mut |reference| extent = reference.extent());
    assert_eq!(extent, Extent { elements: Some(2), first: 3, capacity: Some(4) });
    // The block may be larger than the capacity.
    let bytes = words(&[0xb000, 0xc000, 0xd000, 0xe000, 0xf000]);
    let elements = BlockType::Elements(boxed);
    assert_eq!(block(&types, elements, extent, &bytes), ["[0] e000 Owns", "[1] b000 Owns"]);
}

#[test]
fn only_the_live_variant_holds_something() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let vec = types.vec("usize", word);
    let variant = |name: &str, values, fields: &[(&str, u64, TypeId)]| Variant {
        name: name.into(),
        values,
        fields: list(fields),
    };
    // The capacity of the vector has the discriminants of the other variants.
    let niche = 0x8000_0000_0000_0000u128;
    let variants = vec![
        variant("One", Some(vec![niche..=niche]), &[("__0", 8, boxed)]),
        variant("Many", None, &[("list", 0, vec)]),
        variant("Nothing", Some(vec![niche + 2..=niche + 2]), &[]),
    ];
    let shape = Shape::Enum { tag: Some((0, 8)), variants };
    let shape = types.push("app::Shape", 24, shape, &[]);
    assert_eq!(value(&types, shape, &words(&[niche as u64, 0xa000, 5])), ["One.0 a000 Owns"]);
    assert_eq!(value(&types, shape, &words(&[2, 0xa000, 1])), ["Many.list a000 Owns 1"]);
    assert_eq!(value(&types, shape, &words(&[niche as u64 + 2, 0xa000, 1])), Vec::<String>::new());
}

#[test]
fn full_slots_of_a_table_hold_keys_and_values() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let pair = types.structure("(Box<usize>, Box<usize>)", 16, &[("__0", 0, boxed), ("__1", 8, boxed)]);
    let byte = types.plain("u8", 1);
    let raw = types.pointer("*mut u8", byte);
    let control = types.structure("core::ptr::non_null::NonNull<u8>", 8, &[("pointer", 0, raw)]);
    let inner = types.structure(
        "hashbrown::raw::RawTableInner",
        32,
        &[("bucket_mask", 8, word), ("ctrl", 0, control), ("growth_left", 16, word), ("items", 24, word)],
    );
    let name = "hashbrown::raw::RawTable<(Box<usize>, Box<usize>), alloc::alloc::Global>";
    let table = types.generic(name, 32, &[("table", 0, inner)], &[("T", pair)]);
    let map = types.structure("std::collections::hash::map::HashMap<A, B>", 32, &[("base", 0, table)]);
    let app = types.structure("app::App", 32, &[("map", 0, map)]);
    // Four buckets of 16 bytes before the control bytes.
    let bytes = words(&[0xa040, 3, 1, 2]);
    assert_eq!(value(&types, app, &bytes), ["map a000 Owns 4"]);
    // The table of an empty map is a static.
    assert_eq!(value(&types, app, &words(&[0xa040, 0, 0, 0])), Vec::<String>::new());

    // Slot 0 is full, slot 1 is deleted, slot 2 is empty, slot 3 is full. Slots lie in reverse.
    let mut bytes = words(&[0xb003, 0xc003, 0xb002, 0xc002, 0xb001, 0xc001, 0xb000, 0xc000]);
    bytes.extend([0x11, 0x80, 0xff, 0x7f, 0x11, 0x80, 0xff, 0x7f]);
    bytes.extend([0xff; 12]);
    let edges = ["[0].key b000 Owns", "[0].value c000 Owns", "[3].key b003 Owns", "[3].value c003 Owns"];
    assert_eq!(block(&types, BlockType::Table(pair), Some(4).into(), &bytes), edges);
    assert_eq!(block(&types, BlockType::Table(pair), all(), &bytes), edges);
    assert_eq!(block(&types, BlockType::Table(pair), Some(1 << 60).into(), &bytes).len(), 0);
}

#[test]
fn what_was_dropped_with_the_last_rc_holds_nothing() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let node = types.structure("app::Node", 8, &[("next", 0, boxed)]);
    let cell = types.structure("core::cell::Cell<usize>", 8, &[("value", 0, word)]);
    let fields = [("strong", 0, cell), ("weak", 8, cell), ("value", 16, node)];
    let inner = types.structure("alloc::rc::RcInner<app::Node>", 24, &fields);
    let pointer = types.pointer("*const alloc::rc::RcInner<app::Node>", inner);
    let name = "core::ptr::non_null::NonNull<alloc::rc::RcInner<app::Node>>";
    let pointer = types.structure(name, 8, &[("pointer", 0, pointer)]);
    let rc = types.structure("alloc::rc::Rc<app::Node, alloc::alloc::Global>", 8, &[("ptr", 0, pointer)]);
    let weak = types.structure("alloc::rc::Weak<app::Node, alloc::alloc::Global>", 8, &[("ptr", 0, pointer)]);
    assert_eq!(value(&types, rc, &words(&[0xa000])), [" a000 Owns"]);
    assert_eq!(value(&types, weak, &words(&[0xa000])), [" a000 Weak"]);
    let inner = BlockType::One(inner);
    assert_eq!(block(&types, inner, all(), &words(&[1, 1, 0xa000])), ["next a000 Owns"]);
    assert_eq!(block(&types, inner, all(), &words(&[0, 1, 0xa000])), Vec::<String>::new());
    let slice = BlockType::CountedElements(boxed);
    assert_eq!(block(&types, slice, Some(1).into(), &words(&[1, 1, 0xa000, 0xb000])), ["[0] a000 Owns"]);
    assert_eq!(block(&types, slice, Some(1).into(), &words(&[0, 1, 0xa000, 0xb000])), Vec::<String>::new());
}

#[test]
fn a_node_of_a_tree_holds_as_many_entries_as_it_has() {
    let mut types = Types::new();
    let word = types.word();
    let short = types.plain("u16", 2);
    let boxed = types.boxed("usize", word);
    let arguments = "<usize, Box<usize>>";
    let leaf = TypeId(types.next().0 + 9);
    let internal = TypeId(leaf.0 + 3);
    let parent = types.pointer("*mut Internal", internal);
    let parent = types.option("Internal", parent);
    let keys = types.maybe_uninit("usize", word);
    let keys = types.array("[MaybeUninit<usize>; 11]", keys, 11);
    let values = types.maybe_uninit("Box<usize>", boxed);
    let values = types.array("[MaybeUninit<Box<usize>>; 11]", values, 11);
    let leaf = types.structure(
        &format!("alloc::collections::btree::node::LeafNode{arguments}"),
        192,
        &[("parent", 0, parent), ("keys", 8, keys), ("vals", 96, values), ("len", 184, short)],
    );
    assert_eq!(internal, TypeId(types.next().0 + 2));
    let edge = types.pointer("*mut Leaf", leaf);
    let edges = types.array("[Edge; 12]", edge, 12);
    let internal = types.structure(
        &format!("alloc::collections::btree::node::InternalNode{arguments}"),
        288,
        &[("data", 0, leaf), ("edges", 192, edges)],
    );
    let mut memory = vec![0xf000; 36];
    memory[12..14].copy_from_slice(&[0xa000, 0xa001]);
    memory[23] = 2;
    memory[24..27].copy_from_slice(&[0xb000, 0xb001, 0xb002]);
    let bytes = words(&memory);
    let entries = ["parent f000 Weak", "[0].value a000 Owns", "[1].value a001 Owns"];
    let children = ["edges[0] b000 Owns", "edges[1] b001 Owns", "edges[2] b002 Owns"];
    assert_eq!(block(&types, BlockType::One(leaf), all(), &bytes[..192]), entries);
    assert_eq!(
        block(&types, BlockType::One(internal), all(), &bytes),
        [&entries[..], &children[..]].concat()
    );
    // Pointers to nodes do not tell whether these have children. The size does.
    assert_eq!(block(&types, BlockType::One(leaf), all(), &bytes).len(), 6);
    // A length that cannot be is damaged memory.
    memory[23] = 12;
    let bytes = words(&memory);
    assert_eq!(block(&types, BlockType::One(leaf), all(), &bytes[..192]), entries[..1]);
}

#[test]
fn fields_of_unions_are_doubtful_in_rust_unless_they_agree() {
    let mut types = Types::new();
    types.layouts.set_rust_version(Some(RustVersion(1, 95)));
    let word = types.word();
    let (first, second) = (types.pointer("*mut usize", word), types.pointer("*const usize", word));
    let unsure = types.push("app::U", 8, Shape::Union(list(&[("p", 0, first), ("n", 0, word)])), &[]);
    let sure = types.push("v", 8, Shape::Union(list(&[("p", 0, first), ("q", 0, second)])), &[]);
    assert_eq!(value(&types, unsure, &words(&[0xa000])), ["p a000 Weak"]);
    assert_eq!(value(&types, sure, &words(&[0xa000])), ["p a000 Refers"]);
    let uninit = types.maybe_uninit("*mut usize", first);
    assert_eq!(value(&types, uninit, &words(&[0xa000])), [" a000 Weak"]);
    // C has tagged unions, of which no tag is known. Pointers at one place are one.
    let fields = [("p", 0, first), ("n", 0, word), ("q", 0, second)];
    let of_c = types.push("value", 8, Shape::Union(list(&fields)), &[]);
    let one = types.push("one", 8, Shape::Union(list(&fields[..2])), &[]);
    let around = types.structure("node", 16, &[("n", 0, word), ("u", 8, of_c)]);
    assert_eq!(value(&types, around, &words(&[0xb000, 0xa000])), ["u a000 Refers"]);
    assert_eq!(value(&types, one, &words(&[0xa000])), ["p a000 Refers"]);
}

/// `std::string` and `std::vector` of libc++ 14, as Clang describes them.
#[test]
fn containers_of_libcxx_tell_their_lengths() {
    let mut types = Types::new();
    let word = types.word();
    let byte = types.plain("char", 1);
    let text = types.pointer("char *", byte);
    let fields = [("__cap_", 0, word), ("__size_", 8, word), ("__data_", 16, text)];
    let long = types.structure("std::__1::basic_string<char>::__long", 24, &fields);
    let bytes = types.array("char[23]", byte, 23);
    let fields = [("__size_", 0, byte), ("__data_", 1, bytes)];
    let short = types.structure("std::__1::basic_string<char>::__short", 24, &fields);
    let either = Shape::Union(list(&[("__l", 0, long), ("__s", 0, short)]));
    let either = types.push("", 24, either, &[]);
    let representation = types.structure("std::__1::basic_string<char>::__rep", 24, &[("", 0, either)]);
    let pair = types.structure("pair", 24, &[("__value_", 0, representation)]);
    let string = types.generic("std::__1::basic_string<char>", 24, &[("__r_", 0, pair)], &[("_CharT", byte)]);
    assert_eq!(value(&types, string, &words(&[33, 20, 0xa000])), [" a000 Owns 20"]);
    // A length of 20, then text that looks like an address.
    assert_eq!(value(&types, string, &words(&[40, 0xb000, 0xa000])), Vec::<String>::new());

    let start = types.pointer("std::__1::basic_string<char> *", string);
    let empty = types.structure("std::__1::allocator<std::__1::basic_string<char> >", 1, &[]);
    let end = types.structure("pair of end", 8, &[("__value_", 0, start), ("allocator", 0, empty)]);
    let fields = [("__begin_", 0, start), ("__end_", 8, start), ("__end_cap_", 16, end)];
    let vector =
        types.generic("std::__1::vector<std::__1::basic_string<char> >", 24, &fields, &[("_Tp", string)]);
    let bounds = words(&[0xa000, 0xa000 + 2 * 24, 0xa000 + 5 * 24]);
    assert_eq!(value(&types, vector, &bounds), [" a000 Owns 2"]);
    let unique = types.structure("pair of pointer", 8, &[("__value_", 0, start)]);
    let unique = types.generic(
        "std::__1::unique_ptr<std::__1::basic_string<char> >",
        8,
        &[("__ptr_", 0, unique)],
        &[("_Tp", string)],
    );
    assert_eq!(value(&types, unique, &words(&[0xa000])), [" a000 Owns"]);
}

#[test]
fn damaged_layouts_are_unknown_and_take_no_time() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let itself = types.next();
    types.structure("Itself", 8, &[("itself", 0, itself), ("other", 0, boxed)]);
    let array = types.push("[T; 99]", 8, Shape::Array { element: boxed, count: u64::MAX }, &[]);
    let far = types.structure("Far", 8, &[("far", u64::MAX - 3, boxed), ("pair", u64::MAX, array)]);
    let (mut wide, mut half) = (boxed, boxed);
    for depth in 0..40 {
        half = if depth == 11 { wide } else { half };
        wide = types.structure(&format!("Wide{depth}"), 8, &[("a", 0, wide), ("b", 0, wide)]);
    }
    let mut deep = boxed;
    for depth in 0..1000 {
        deep = types.structure(&format!("Deep{depth}"), 8, &[("a", 0, deep)]);
    }
    let mut many = Vec::new();
    for place in 0..1024u64 {
        many.push(Variant {
            name: "V".into(),
            values: Some(vec![place.into()..=place.into()]),
            fields: list(&[("wide", 8, half)]),
        });
    }
    let many = types.push("Many", 16, Shape::Enum { tag: Some((0, 8)), variants: many }, &[]);
    let mut references = References::new(&types.layouts);
    let declared = BlockType::One(TypeId(0));
    assert_eq!(references.pointers(declared), Pointers::None);
    for id in [itself, wide, deep, many] {
        assert_eq!(references.pointers(BlockType::One(id)), Pointers::Unknown);
    }
    assert_eq!(value(&types, array, &words(&[0xa000, 0xb000])).len(), 2);
    assert_eq!(value(&types, far, &words(&[0xa000, 0xb000])).len(), 0);
}

#[test]
fn text_is_utf8_of_its_length() {
    let long = "é".repeat(200);
    assert_eq!(text(2, b"ab").as_deref(), Some("ab"));
    assert_eq!(text(0, b"").as_deref(), Some(""));
    assert_eq!(text(3, b"ab\xff"), None);
    assert_eq!(text(3, b"ab\xc3"), None, "it ends within a character");
    assert_eq!(text(400, &long.as_bytes()[..199]), Some("é".repeat(99) + "…"));
    assert_eq!(text(400, &long.as_bytes()[..200]), Some("é".repeat(100) + "…"));
    assert_eq!(shown_bytes(7), 7);
    assert_eq!(shown_bytes(u64::MAX), 200);
    assert_eq!(start_of_text(BlockType::Bytes), 0);
    assert_eq!(start_of_text(BlockType::CountedElements(TypeId(0))), 16);
}

#[test]
fn a_small_vec_has_its_elements_within_itself_or_on_the_heap() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let array = types.array("[Box<usize>; 3]", boxed, 3);
    let inline = types.maybe_uninit("[Box<usize>; 3]", array);
    let pointer = types.pointer("*const Box<usize>", boxed);
    let pointer = types.structure("core::ptr::non_null::NonNull<Box<usize>>", 8, &[("pointer", 0, pointer)]);
    let pair = types.structure("(NonNull<Box<usize>>, usize)", 16, &[("__0", 0, pointer), ("__1", 8, word)]);
    let fields = list(&[("inline", 0, inline), ("heap", 0, pair)]);
    let data = types.push("smallvec::SmallVecData<[Box<usize>; 3]>", 24, Shape::Union(fields), &[]);
    let fields = [("capacity", 24, word), ("data", 0, data)];
    let vec = types.generic("smallvec::SmallVec<[Box<usize>; 3]>", 32, &fields, &[("A", array)]);
    let app = types.structure("app::App", 40, &[("id", 0, word), ("small", 8, vec)]);
    let inline = words(&[9, 0xa000, 0xb000, 0xc000, 2]);
    assert_eq!(value(&types, app, &inline), ["small[0] a000 Owns", "small[1] b000 Owns"]);
    let heap = words(&[9, 0xa000, 3, 0xc000, 4]);
    assert_eq!(value(&types, app, &heap), ["small a000 Owns 3"]);
}

#[test]
fn owners_are_recognized_beside_words_without_types() {
    const BUFFER: u64 = 0x7f00_0000_1000;
    const OTHER: u64 = 0x7f00_0000_2008;
    let mut types = Types::new();
    let word = types.word();
    let pair = types.structure("Pair", 16, &[("__0", 0, word), ("__1", 8, word)]);
    types.vec("Pair", pair);
    let contains = BlockType::Elements(pair);
    let extent = |elements, first| Extent { elements: Some(elements), first, capacity: Some(8) };
    let beside = |types: &Types, words: &[u64], at| {
        References::new(&types.layouts).extent_from_owner(contains, 128, words, at, &image())
    };
    // Capacity, pointer, length.
    assert_eq!(beside(&types, &[8, BUFFER, 5, 3], 1), Some(extent(5, 0)));
    // The length is above the capacity; the capacity is not that of the block; words are missing.
    assert_eq!(beside(&types, &[8, BUFFER, 9, 3], 1), None);
    assert_eq!(beside(&types, &[4, BUFFER, 4, 3], 1), None);
    assert_eq!(beside(&types, &[8, BUFFER], 1), None);
    assert_eq!(beside(&types, &[BUFFER, 8, 5], 0), None);

    // Pointers to the buffer, to the next element and behind the last.
    let pointer = types.pointer("*const Pair", pair);
    let name = "alloc::vec::into_iter::IntoIter<Pair, alloc::alloc::Global>";
    let fields = [("buf", 0, pointer), ("cap", 16, word), ("ptr", 8, pointer), ("end", 24, pointer)];
    types.generic(name, 32, &fields, &[("T", pair)]);
    let iterator = [8, BUFFER, BUFFER + 32, 8, BUFFER + 96];
    assert_eq!(beside(&types, &iterator, 1), Some(extent(4, 2)));

    // A program with such a deque: what may be either is neither.
    let raw = types.raw_vec("Pair", pair);
    let name = "alloc::collections::vec_deque::VecDeque<Pair, alloc::alloc::Global>";
    let fields = [("head", 16, word), ("len", 24, word), ("buf", 0, raw)];
    types.generic(name, 32, &fields, &[("T", pair)]);
    assert_eq!(beside(&types, &[8, BUFFER, 5, 3], 1), None);
    assert_eq!(beside(&types, &[8, BUFFER, 5, OTHER], 1), Some(extent(5, 0)));
}

/// The states of `std::sys::sync::once::futex`: `state` up to 1.83, `state_and_queued` from 1.84, other values from 1.90.
#[test]
fn a_value_is_initialized_if_its_once_is_complete() {
    for (version, field, states) in [
        (Some(RustVersion(1, 95)), "state_and_queued", [(0, true), (1, false), (3, false), (5, false)]),
        (Some(RustVersion(1, 90)), "state_and_queued", [(0, true), (2, false), (3, false), (4, false)]),
        (Some(RustVersion(1, 89)), "state_and_queued", [(0, false), (2, false), (3, true), (6, false)]),
        (Some(RustVersion(1, 84)), "state_and_queued", [(0, false), (1, false), (3, true), (4, false)]),
        (Some(RustVersion(1, 83)), "state", [(0, false), (2, false), (3, false), (4, true)]),
        (None, "state_and_queued", [(0, true), (1, false), (3, false), (4, false)]),
    ] {
        let mut types = Types::new();
        types.layouts.set_rust_version(version);
        let word = types.word();
        let boxed = types.boxed("usize", word);
        let cell = types.maybe_uninit("Box<usize>", boxed);
        let number = types.plain("u32", 4);
        let once = types.structure("std::sync::once::Once", 4, &[(field, 0, number)]);
        let lock = types.generic(
            "std::sync::once_lock::OnceLock<Box<usize>>",
            16,
            &[("once", 0, once), ("value", 8, cell)],
            &[("T", boxed)],
        );
        for (state, is_complete) in states {
            let hold = if is_complete { "Owns" } else { "Weak" };
            let found = value(&types, lock, &words(&[state, 0xa000]));
            assert_eq!(found, [format!(" a000 {hold}")], "{version:?}, state {state}");
        }
    }
}

/// Bytes from 0x10000 on.
struct Bytes(Vec<u8>);

impl Memory for Bytes {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(from) = address.checked_sub(0x10000) else { return 0 };
        let bytes = self.0.get(from as usize..).unwrap_or_default();
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        count
    }
}

#[test]
fn a_large_block_has_in_pieces_the_pointers_that_it_has_whole() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    // 40 bytes: no piece ends where a window does.
    let entry = types.structure(
        "(usize, Box<usize>, [usize; 3])",
        40,
        &[("__0", 0, word), ("__1", 8, boxed), ("rest", 16, word)],
    );
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 16
    };
    let buckets = 1_u64 << 16;
    let table = (buckets * 40 + buckets + 16) as usize;
    let bytes: Vec<u8> = (0..table.div_ceil(8)).flat_map(|_| random().to_le_bytes()).collect();
    let cases = [
        (BlockType::Elements(entry), all(), bytes.len()),
        (BlockType::Elements(entry), Some(50_000).into(), bytes.len()),
        (
            BlockType::Elements(entry),
            Extent { elements: Some(60_000), first: 9_000, capacity: Some(64_000) },
            bytes.len(),
        ),
        (BlockType::CountedElements(entry), all(), bytes.len()),
        (BlockType::SharedElements(entry), Some(40_000).into(), bytes.len()),
        (BlockType::Table(entry), all(), table),
        (BlockType::Table(entry), Some(buckets).into(), table),
    ];
    for (contains, extent, size) in cases {
        let expected = block(&types, contains, extent, &bytes[..size]);
        assert!(expected.len() > 10_000, "{contains:?} has {} pointers", expected.len());
        let image = CoreImage { memory: Box::new(Bytes(bytes.clone())), ..image() };
        let mut window = crate::window::Window::new(&image);
        let mut lines = Vec::new();
        let mut each = |reference: Reference<'_>| lines.push(line(reference));
        let place = (0x10000, size as u64);
        References::new(&types.layouts).of_block_in(&mut window, contains, extent, place, &image, &mut each);
        assert!(lines == expected, "{contains:?}: {} pointers instead of {}", lines.len(), expected.len());
    }
}

/// hashbrown's `capacity_to_buckets`, and what it allocates for them.
#[test]
fn sizes_of_hash_tables() {
    use super::tables::{buckets_for, table_bytes};
    let needed = [
        (0, 0),
        (1, 4),
        (3, 4),
        (4, 8),
        (7, 8),
        (8, 16),
        (14, 16),
        (15, 32),
        (28, 32),
        (29, 64),
        (2000, 4096),
    ];
    for (entries, buckets) in needed {
        assert_eq!(buckets_for(entries), buckets, "{entries}");
    }
    assert!(buckets_for(u64::MAX) >= 1 << 61);
    assert_eq!((table_bytes(0, 4), table_bytes(4, 4), table_bytes(4, 5)), (0, 16 + 4 + 16, 32 + 4 + 16));
    assert_eq!(table_bytes(131_072, 4), 131_072 * 5 + 16);
    assert_eq!(table_bytes(u64::MAX, 4), u64::MAX);
}
