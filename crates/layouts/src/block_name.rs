//! Names of blocks by what they contain, as the types of recorded allocations are written.

use super::{BlockType, Layouts, TypeId, cpp_name};
use stackglass_symbols::types::{Family, cpp_node, named_block, short};

impl Layouts {
    /// The name of blocks with this content: `Rc<Node>`, `[String]`, `HashMap<u64, String> table`. In programs of C and C++:
    /// `Node`, `Node[]`, `map<int, Node> node`.
    ///
    /// # Panics
    /// If a type is not from these layouts.
    pub fn block_name(&self, contains: BlockType) -> String {
        let full = |id: TypeId| &*self.get(id).name;
        if let BlockType::One(id) = contains
            && let Some(name) = cpp_node(&cpp_name::uniform(full(id)))
        {
            return name;
        }
        match contains {
            BlockType::One(id) if !self.is_rust => short(&cpp_name::uniform(full(id))),
            BlockType::Elements(id) if !self.is_rust => format!("{}[]", short(&cpp_name::uniform(full(id)))),
            BlockType::Bytes if !self.is_rust => "char[]".to_owned(),
            BlockType::One(id) => named_block(Family::Box, full(id)),
            BlockType::Elements(id) => format!("[{}]", self.get(id).short_name()),
            BlockType::CountedElements(id) => format!("Rc<[{}]>", self.get(id).short_name()),
            BlockType::SharedElements(id) => format!("Arc<[{}]>", self.get(id).short_name()),
            BlockType::Table(id) => named_block(Family::Table, full(id)),
            BlockType::Bytes => "[u8]".to_owned(),
        }
    }
}
