//! Structures of crossbeam with hand-made layouts.

use super::*;

/// `Atomic<T>`; the word in it is a number, or a pointer in later versions.
fn atomic(types: &mut Types, name: &str, target: TypeId, with_number: bool) -> TypeId {
    let word = types.word();
    let unit = types.plain("()", 0);
    let data = match with_number {
        true => types.structure("core::sync::atomic::AtomicUsize", 8, &[("v", 0, word)]),
        false => {
            let pointer = types.pointer("*mut ()", unit);
            types.structure("core::sync::atomic::AtomicPtr<()>", 8, &[("p", 0, pointer)])
        }
    };
    let fields = [("data", 0, data), ("_marker", 8, unit)];
    types.generic(&format!("crossbeam_epoch::atomic::Atomic<{name}>"), 8, &fields, &[("T", target)])
}

/// A value at a multiple of 128.
fn padded(types: &mut Types, value: TypeId) -> TypeId {
    let name = types.layouts.get(value).name.clone();
    let name = format!("crossbeam_utils::cache_padded::CachePadded<{name}>");
    types.generic(&name, 128, &[("value", 0, value)], &[("T", value)])
}

#[test]
fn a_tag_is_no_part_of_an_address() {
    for with_number in [true, false] {
        let mut types = Types::new();
        let word = types.word();
        let entry = types.structure("app::Entry", 16, &[("key", 0, word), ("value", 8, word)]);
        let next = atomic(&mut types, "app::Entry", entry, with_number);
        let list = types.structure("app::List", 16, &[("count", 0, word), ("head", 8, next)]);
        for (held, expected) in
            [(0xa000, &["head a000 Refers"][..]), (0xa001, &["head a000 Refers"]), (0, &[]), (1, &[])]
        {
            assert_eq!(value(&types, list, &words(&[3, held])), expected, "{held:x} {with_number}");
        }
        let mut contains = Vec::new();
        let bytes = words(&[3, 0xa001]);
        References::new(&types.layouts).of_value(list, 0, &bytes, &image(), &mut |reference| {
            contains.push(reference.contains);
        });
        assert_eq!(contains, [Some(BlockType::One(entry))]);
        assert_eq!(References::new(&types.layouts).pointers(BlockType::One(list)), Pointers::Listed);
    }
}

/// A queue of boxes of which others steal, and the type of its buffer.
fn steal_deque(types: &mut Types) -> (TypeId, TypeId) {
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let pointer = types.pointer("*mut Box<usize>", boxed);
    let buffer = types.generic(
        "crossbeam_deque::deque::Buffer<Box<usize>>",
        16,
        &[("ptr", 0, pointer), ("cap", 8, word)],
        &[("T", boxed)],
    );
    let held = atomic(types, "crossbeam_deque::deque::Buffer<Box<usize>>", buffer, true);
    let held = padded(types, held);
    let number = types.structure("core::sync::atomic::AtomicIsize", 8, &[("v", 0, word)]);
    let fields = [("front", 128, number), ("back", 136, number), ("buffer", 0, held)];
    let inner = types.generic("crossbeam_deque::deque::Inner<Box<usize>>", 256, &fields, &[("T", boxed)]);
    (inner, buffer)
}

#[test]
fn a_queue_holds_what_was_not_taken_from_it() {
    let mut types = Types::new();
    let (inner, buffer) = steal_deque(&mut types);
    // The buffer with 4 places, and then these.
    let memory = [0x10010, 4, 0xa000, 0xb000, 0xc000, 0xd000];
    let image = CoreImage { memory: Box::new(Bytes(words(&memory))), ..image() };
    let mut references = References::new(&types.layouts);
    assert!(references.has_lengths(BlockType::One(inner)));
    let mut of_queue = |front: i64, back: i64, buffer: u64| {
        let mut held = [0; 32];
        (held[0], held[16], held[17]) = (buffer, front.cast_unsigned(), back.cast_unsigned());
        let mut lines = Vec::new();
        let mut extent = None;
        references.of_value(inner, 0, &words(&held), &image, &mut |reference| {
            lines.push(line(reference));
            if reference.elements.is_some() {
                extent = Some((reference.contains.unwrap(), reference.extent()));
            }
        });
        let mut elements = Vec::new();
        if let Some((contains, extent)) = extent {
            let bytes = words(&memory[2..]);
            references.of_block(contains, extent, 0x10010, &bytes, &image, &mut |reference| {
                elements.push(reference.target);
            });
        }
        (lines, elements)
    };
    let held = |count: u64| vec!["buffer 10000 Refers".to_owned(), format!("buffer.ptr 10010 Owns {count}")];
    assert_eq!(of_queue(0, 0, 0x10000), (held(0), vec![]));
    assert_eq!(of_queue(1, 3, 0x10000), (held(2), vec![0xb000, 0xc000]));
    assert_eq!(of_queue(7, 9, 0x10000), (held(2), vec![0xd000, 0xa000]));
    // Numbers overflow.
    assert_eq!(of_queue(i64::MAX, i64::MIN, 0x10000), (held(1), vec![0xd000]));
    // The owner has taken the last, and another has been faster.
    assert_eq!(of_queue(2, 1, 0x10000), (held(0), vec![]));
    // Damaged: more elements than places; no buffer there.
    assert_eq!(of_queue(0, 5, 0x10000).0, ["buffer 10000 Refers"]);
    assert_eq!(of_queue(0, 1, 0x9000).0, ["buffer 9000 Refers"]);
    // The buffer itself does not know which of its elements are in use.
    let mut contains = Vec::new();
    references.of_value(buffer, 0, &words(&[0x10010, 4]), &image, &mut |reference| {
        contains.push((
            line(reference),
            reference.contains.is_some_and(|found| matches!(found, BlockType::Elements(_))),
        ));
    });
    assert_eq!(contains, [("ptr 10010 Refers".to_owned(), true)]);
}

#[test]
fn tasks_that_were_stolen_from_a_shared_queue_are_not_held() {
    let mut types = Types::new();
    let word = types.word();
    let boxed = types.boxed("usize", word);
    let task = types.maybe_uninit("alloc::boxed::Box<usize>", boxed);
    let task = types.structure("core::cell::UnsafeCell<MaybeUninit<Box<usize>>>", 8, &[("value", 0, task)]);
    let state = types.structure("core::sync::atomic::AtomicUsize", 8, &[("v", 0, word)]);
    let slot = types.generic(
        "crossbeam_deque::deque::Slot<Box<usize>>",
        16,
        &[("task", 0, task), ("state", 8, state)],
        &[("T", boxed)],
    );
    for (state, is_held) in [(0, false), (1, true), (2, false), (3, false), (5, true), (7, false)] {
        let found = value(&types, slot, &words(&[0xa000, state]));
        assert_eq!(found.len(), usize::from(is_held), "{state}: {found:?}");
    }
}
