//! Tells the layouts of its own types and the places of its variables. See `tests/real/layouts.rs` for the lines.

#![feature(offset_of_enum)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub struct Node {
    left: Option<Box<Node>>,
    shape: Shape,
    deep: Option<Option<bool>>,
    numbers: [u16; 4],
    pair: (u8, u32),
    map: HashMap<String, Rc<Node>>,
    slice: &'static [u64],
    text: &'static str,
    object: Box<dyn Speak>,
    next: *mut Node,
    many: Vec<Node>,
    tree: BTreeMap<u64, Arc<Mutex<Node>>>,
    both: Both,
}

pub enum Shape {
    Empty,
    Circle(u8),
    Square { side: Box<u32>, color: u16 },
}

pub enum Niche {
    Text(String),
    First,
    Second(u8),
    Third,
}

#[repr(i16)]
pub enum Signed {
    Low(u8) = -300,
    High(u64) = 5,
}

#[repr(u64)]
pub enum Wide {
    Small(u8) = 1,
    Large(u8) = u64::MAX,
}

#[repr(u128)]
pub enum Huge {
    Small(u8) = 1,
    Large(u64) = 1 << 100,
}

pub enum Single {
    Only(u32, Box<u8>),
}

pub enum Never {
    Some(u64),
    None(std::convert::Infallible),
}

pub union Both {
    word: u64,
    pointer: *const Node,
}

pub trait Speak {
    fn speak(&self) -> usize;
}

impl Speak for Shape {
    fn speak(&self) -> usize {
        static LOCAL: AtomicUsize = AtomicUsize::new(7);
        tell_static("known::{impl#0}::speak::LOCAL", &LOCAL, "core::sync::atomic::AtomicUsize");
        LOCAL.fetch_add(1, Ordering::Relaxed)
    }
}

impl Speak for [u64; 3] {
    fn speak(&self) -> usize {
        self.len()
    }
}

pub static CACHE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
pub static mut TABLE: [Option<Box<Node>>; 5] = [const { None }; 5];

pub mod inner {
    pub static POINTER: std::sync::atomic::AtomicPtr<super::Node> =
        std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
}

thread_local! {
    pub static KEY: RefCell<Vec<Rc<Node>>> = RefCell::new(Vec::new());
    pub static FLAG: Cell<u32> = const { Cell::new(3) };
}

unsafe extern "C" {
    static __ehdr_start: u8;
}

fn base() -> usize {
    (&raw const __ehdr_start) as usize
}

fn tell_static<T>(name: &str, place: *const T, a_type: &str) {
    println!("static|{name}|{}|{a_type}|{}", place as usize - base(), size_of::<T>());
}

fn tell_thread_local<T>(name: &str, place: *const T, before: usize, a_type: &str, size: usize) {
    let pointer: usize;
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer) };
    println!("thread local|{name}|{}|{a_type}|{size}", pointer - (place as usize - before));
}

fn tell_vtable(name: &str, object: &dyn Speak) {
    let [_, vtable]: [usize; 2] = unsafe { std::mem::transmute(object) };
    println!("vtable|{name}|{}|0", vtable - base());
}

fn tell_variant<T>(name: &str, variant: &str, value: T) {
    // Padding is zero.
    let mut bytes = MaybeUninit::<T>::zeroed();
    bytes.write(value);
    let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), size_of::<T>()) };
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("variant|{name}|{variant}|{text}");
}

macro_rules! tell_fields {
    ($name:literal, $kind:ty, $($field:ident: $a_type:ty),*) => {
        println!("type|{}|{}", $name, size_of::<$kind>());
        $(println!("field|{}|{}|{}|{}", $name, stringify!($field), offset_of!($kind, $field), size_of::<$a_type>());)*
    };
}

fn main() {
    tell_fields!("known::Node", Node, left: usize, shape: Shape, deep: u8, numbers: u64, pair: (u8, u32),
        map: HashMap<String, Rc<Node>>, slice: &[u64], text: &str, object: Box<dyn Speak>, next: usize,
        many: Vec<Node>, tree: BTreeMap<u64, u8>, both: u64);
    tell_fields!("known::Both", Both, word: u64, pointer: usize);
    println!("target|known::Node|next|known::Node");
    println!("target|known::Node|slice.data_ptr|u64");
    println!("count|known::Node|numbers|4");
    println!("short|known::Node|Node");
    println!("type|[u16; 4]|8");
    println!("type|alloc::vec::Vec<known::Node, alloc::alloc::Global>|24");
    println!("short|alloc::vec::Vec<known::Node, alloc::alloc::Global>|Vec<Node>");
    println!("type|alloc::rc::RcInner<known::Node>|{}", size_of::<Node>() + 16);
    println!("variant field|known::Shape|Circle|__0|{}", offset_of!(Shape, Circle.0));
    println!("variant field|known::Shape|Square|side|{}", offset_of!(Shape, Square.side));
    println!("variant field|known::Shape|Square|color|{}", offset_of!(Shape, Square.color));
    println!("variant field|known::Single|Only|__1|{}", offset_of!(Single, Only.1));
    tell_variant("known::Shape", "Empty", Shape::Empty);
    tell_variant("known::Shape", "Circle", Shape::Circle(4));
    tell_variant("known::Shape", "Square", Shape::Square { side: Box::new(1), color: 2 });
    tell_variant("known::Niche", "Text", Niche::Text("text".to_owned()));
    tell_variant("known::Niche", "Text", Niche::Text(String::new()));
    tell_variant("known::Niche", "First", Niche::First);
    tell_variant("known::Niche", "Second", Niche::Second(9));
    tell_variant("known::Niche", "Third", Niche::Third);
    tell_variant("known::Signed", "Low", Signed::Low(1));
    tell_variant("known::Signed", "High", Signed::High(1));
    tell_variant("known::Wide", "Small", Wide::Small(1));
    tell_variant("known::Wide", "Large", Wide::Large(1));
    tell_variant("known::Huge", "Small", Huge::Small(1));
    tell_variant("known::Huge", "Large", Huge::Large(1));
    tell_variant("known::Single", "Only", Single::Only(1, Box::new(2)));
    tell_variant("known::Never", "Some", Never::Some(1));
    tell_variant("core::option::Option<core::option::Option<bool>>", "Some", Some(Some(true)));
    tell_variant("core::option::Option<core::option::Option<bool>>", "Some", Some(None::<bool>));
    tell_variant("core::option::Option<core::option::Option<bool>>", "None", None::<Option<bool>>);
    tell_variant("core::option::Option<char>", "None", None::<char>);
    tell_variant("core::option::Option<char>", "Some", Some('z'));
    tell_variant("core::option::Option<known::Huge>", "Some", Some(Huge::Large(4)));
    tell_variant("core::option::Option<known::Huge>", "None", None::<Huge>);

    let mutex = "std::sync::poison::mutex::Mutex<alloc::vec::Vec<u64, alloc::alloc::Global>>";
    tell_static("known::CACHE", &CACHE, mutex);
    let table = "[core::option::Option<alloc::boxed::Box<known::Node, alloc::alloc::Global>>; 5]";
    tell_static("known::TABLE", &raw const TABLE, table);
    tell_static("known::inner::POINTER", &inner::POINTER, "core::sync::atomic::AtomicPtr<known::Node>");
    let storage = "std::sys::thread_local::native::lazy::Storage<core::cell::RefCell<alloc::vec::Vec<alloc::rc::Rc<known::Node, alloc::alloc::Global>, alloc::alloc::Global>>, ()>";
    KEY.with(|key| tell_thread_local("known::KEY", key, 0, storage, 40));
    FLAG.with(|flag| tell_thread_local("known::FLAG", flag, 0, "core::cell::Cell<u32>", 4));

    let shape = Shape::Circle(CACHE.lock().unwrap().len() as u8);
    tell_vtable("known::Shape", &shape);
    tell_vtable("[u64; 3]", &[1u64, 2, 3]);
    shape.speak();
    unsafe { (&raw mut TABLE).cast::<usize>().write_volatile(0) };
    inner::POINTER.store(std::ptr::null_mut(), Ordering::Relaxed);
    if std::env::args().count() > 5 {
        // Keeps everything in the program.
        let node = Node {
            left: None,
            shape,
            deep: None,
            numbers: [0; 4],
            pair: (1, 2),
            map: HashMap::new(),
            slice: &[],
            text: "",
            object: Box::new([1u64, 2, 3]),
            next: std::ptr::null_mut(),
            many: Vec::new(),
            tree: BTreeMap::new(),
            both: Both { word: 0 },
        };
        println!("{} {} {:?} {}", node.text, node.object.speak(), node.slice, node.many.len());
        KEY.with(|key| key.borrow_mut().push(Rc::new(node)));
    }
}
