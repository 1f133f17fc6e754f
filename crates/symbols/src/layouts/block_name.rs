//! Names of blocks by what they contain, as the types of recorded allocations are written.

use super::{BlockType, Layouts, TypeId};
use crate::types::{Family, named_block, short};

impl Layouts {
    /// The name of blocks with this content: `Rc<Node>`, `[String]`, `HashMap<u64, String> table`.
    ///
    /// # Panics
    /// If a type is not from these layouts.
    pub fn block_name(&self, contains: BlockType) -> String {
        let full = |id: TypeId| &*self.get(id).name;
        match contains {
            BlockType::One(id) => {
                let name = named_block(Family::Box, full(id));
                // Only nodes of containers have other names than their types.
                if name == short(full(id)) { self.get(id).short_name.to_string() } else { name }
            }
            BlockType::Elements(id) => format!("[{}]", self.get(id).short_name),
            BlockType::CountedElements(id) => format!("Rc<[{}]>", self.get(id).short_name),
            BlockType::SharedElements(id) => format!("Arc<[{}]>", self.get(id).short_name),
            BlockType::Table(id) => named_block(Family::Table, full(id)),
            BlockType::Bytes => "[u8]".to_owned(),
        }
    }
}
