//! Containers of libraries, by what they mean. A type is recognized by its name and its fields; if a field is missing, its layout is
//! followed as of any other type.

mod bytes;
mod channels;
mod counted;
mod cpp;
mod errors;
mod find;
mod lists;
mod lock_free;
mod maps;
mod small_vec;
mod uninitialized;
mod vectors;

pub(super) use maps::entry;

use super::compile::{Compiler, base};
use super::slots::Compiled;
use stackglass_layouts::{Layout, TypeId};

/// The places of a container.
pub(super) fn model(compiler: &mut Compiler<'_>, id: TypeId, layout: &Layout) -> Option<Compiled> {
    match base(&layout.name) {
        "alloc::vec::Vec" => vectors::vec(compiler, layout),
        "alloc::raw_vec::RawVec" => vectors::raw_vec(compiler, layout),
        "alloc::collections::vec_deque::VecDeque" => vectors::deque(compiler, layout),
        "alloc::vec::into_iter::IntoIter" => vectors::into_iter(compiler, layout),
        "alloc::string::String" | "std::ffi::os_str::OsString" | "alloc::ffi::c_str::CString" => {
            vectors::text(compiler, layout)
        }
        "alloc::boxed::Box" => counted::owner(compiler, layout, "__0"),
        "alloc::rc::Rc" | "alloc::sync::Arc" => counted::owner(compiler, layout, "ptr"),
        "alloc::rc::Weak" | "alloc::sync::Weak" => counted::weak(compiler, layout),
        "alloc::rc::RcInner" | "alloc::rc::RcBox" | "alloc::sync::ArcInner" => {
            counted::inner(compiler, layout)
        }
        "hashbrown::raw::RawTable" | "hashbrown::raw::inner::RawTable" => maps::table(compiler, layout),
        "alloc::collections::btree::node::NodeRef" => maps::node_ref(compiler, layout),
        "alloc::collections::btree::node::LeafNode" => maps::leaf(compiler, layout),
        "alloc::collections::btree::node::InternalNode" => maps::internal(compiler, id, layout),
        "alloc::collections::linked_list::LinkedList" => lists::linked_list(compiler, layout),
        "alloc::collections::linked_list::Node" => lists::node(compiler, layout),
        "std::io::error::repr_bitpacked::Repr" => errors::io_error(compiler, layout),
        "std::sync::mpmc::counter::Sender"
        | "std::sync::mpmc::counter::Receiver"
        | "crossbeam_channel::counter::Sender"
        | "crossbeam_channel::counter::Receiver" => channels::end(compiler, layout),
        "std::sync::mpmc::list::Channel" | "crossbeam_channel::flavors::list::Channel" => {
            channels::list(compiler, layout)
        }
        "std::sync::mpmc::list::Block" | "crossbeam_channel::flavors::list::Block" => {
            channels::block(compiler, layout)
        }
        "std::sync::mpmc::list::Slot" | "crossbeam_channel::flavors::list::Slot" => {
            channels::list_slot(compiler, layout)
        }
        "std::sync::mpmc::array::Slot" | "crossbeam_channel::flavors::array::Slot" => {
            channels::array_slot(compiler, layout)
        }
        lock_free::ATOMIC => lock_free::atomic(compiler, layout),
        "crossbeam_deque::deque::Inner" => lock_free::steal_deque(compiler, layout),
        "crossbeam_deque::deque::Buffer" => lock_free::steal_buffer(compiler, layout),
        "crossbeam_deque::deque::Injector" => channels::list(compiler, layout),
        "crossbeam_deque::deque::Block" => channels::block(compiler, layout),
        "crossbeam_deque::deque::Slot" => channels::list_slot(compiler, layout),
        "std::sync::once_lock::OnceLock" | "std::sync::lazy_lock::LazyLock" => {
            uninitialized::once(compiler, layout)
        }
        "std::sys::thread_local::native::lazy::Storage" => uninitialized::thread_local(compiler, layout),
        "bytes::bytes::Bytes" => bytes::bytes(compiler, layout),
        "smallvec::SmallVec" => small_vec::small_vec(compiler, layout),
        name => cpp::model(compiler, name, id, layout),
    }
}
