//! Containers of libstdc++ and libc++. Nodes of libstdc++ are declared as their base, so their type is found by name.

mod declared;
mod libcxx;
mod nodes;
mod pointers;
mod vectors;

use super::find::argument;
use crate::references::compile::Compiler;
use crate::references::reference::Hold;
use crate::references::slots::Compiled;
use stackglass_layouts::{Layout, TypeId};

/// The places of a container.
pub(super) fn model(
    compiler: &mut Compiler<'_>,
    name: &str,
    id: TypeId,
    layout: &Layout,
) -> Option<Compiled> {
    match name {
        "std::__cxx11::basic_string" => vectors::string(compiler, layout),
        "std::vector" => vectors::vector(compiler, layout),
        "std::deque" => vectors::deque(compiler, layout),
        "std::_Rb_tree" => nodes::tree(compiler, layout),
        "std::_Rb_tree_node" => nodes::tree_node(compiler, id, layout),
        "std::_Hashtable" => nodes::hash_table(compiler, layout),
        "std::__detail::_Hash_node" => nodes::node(compiler, id, layout, "_M_nxt"),
        "std::__cxx11::list" => nodes::list(compiler, layout),
        "std::_List_node" => nodes::list_node(compiler, id, layout),
        "std::forward_list" => nodes::forward_list(compiler, layout),
        "std::_Fwd_list_node" => nodes::node(compiler, id, layout, "_M_next"),
        "std::unique_ptr" => pointers::unique(compiler, layout),
        "std::__shared_ptr" => pointers::shared(compiler, layout, Hold::Owns),
        "std::__weak_ptr" => pointers::shared(compiler, layout, Hold::Weak),
        "std::_Sp_counted_ptr_inplace" => pointers::in_place(compiler, layout),
        "std::_Sp_counted_ptr" | "std::_Sp_counted_deleter" => pointers::counted(compiler, layout),
        "std::_Function_base" => pointers::function(compiler, layout),
        "std::_Optional_payload_base" => pointers::optional(compiler, layout),
        "std::__detail::__variant::_Variant_storage" => pointers::variant(compiler, layout),
        "__gnu_cxx::__aligned_membuf" | "__gnu_cxx::__aligned_buffer" => buffer(compiler, layout),
        _ => libcxx::model(compiler, name, layout),
    }
}

/// Bytes that hold a value.
fn buffer(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let value = argument(layout, "_Tp")?;
    let compiled = compiler.compile(value);
    (compiled.size <= layout.size).then(|| (*compiled).clone())
}
