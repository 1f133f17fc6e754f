//! The owner of a buffer among words without types, such as those of a stack: it is recognized by its layout and its values.

use super::{BlockType, Extent, Op, References};
use stackglass_layouts::{Layouts, TypeId};
use stackglass_process_view::core_image::CoreImage;

/// An allocator may give so many bytes more than were asked for.
const SLACK: u64 = 32;

impl References<'_> {
    /// Which elements of a block are initialized, if `words[at]`, the address of its first byte, is part of a `Vec`, a `String`, a
    /// `VecDeque` or a `vec::IntoIter`. The words lie side by side in memory. `size` is that of the block in bytes.
    ///
    /// The words beside it must be a capacity that is the size of the block, and a length up to that. `None` if no type of the program
    /// fits, or several that differ.
    pub fn extent_from_owner(
        &mut self,
        contains: BlockType,
        size: u64,
        words: &[u64],
        at: usize,
        image: &CoreImage,
    ) -> Option<Extent> {
        if !self.owners.contains_key(&contains) {
            let owners = owners(self.compiler.layouts, contains);
            self.owners.insert(contains, owners);
        }
        let element = match contains {
            BlockType::Elements(id) => self.compiler.layouts.get(id).size,
            _ => 1,
        };
        let mut found: Option<Extent> = None;
        for index in 0..self.owners[&contains].len() {
            let owner = self.owners[&contains][index];
            let Some(extent) = self.extent_by(owner, words, at, image).filter(|extent| {
                let used = extent.capacity.and_then(|capacity| capacity.checked_mul(element));
                used.is_some_and(|used| used <= size && size - used < SLACK)
            }) else {
                continue;
            };
            if found.is_some_and(|other| other != extent) {
                return None;
            }
            found = Some(extent);
        }
        found
    }

    /// What a value of this type says if `words[at]` is its pointer.
    fn extent_by(&mut self, owner: TypeId, words: &[u64], at: usize, image: &CoreImage) -> Option<Extent> {
        let compiled = self.compiled(owner);
        let [Op::Slot(slot)] = &*compiled.ops else { return None };
        let pointer = slot.base.checked_add(slot.pointer)?;
        let aligned = pointer.is_multiple_of(8) && compiled.size.is_multiple_of(8);
        let first = at.checked_sub(usize::try_from(pointer / 8).ok().filter(|_| aligned)?)?;
        let end = first.checked_add(usize::try_from(compiled.size / 8).ok()?)?;
        let bytes: Vec<u8> = words.get(first..end)?.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut extent = None;
        self.of_value(owner, 0, &bytes, image, &mut |reference| extent = Some(reference.extent()));
        extent.filter(|extent| extent.elements.is_some())
    }
}

/// Types that own such a buffer, as far as the program has them.
fn owners(layouts: &Layouts, contains: BlockType) -> Vec<TypeId> {
    let names: Vec<String> = match contains {
        BlockType::Bytes => vec!["alloc::string::String".to_owned()],
        BlockType::Elements(id) => {
            let element = &layouts.get(id).name;
            ["alloc::vec::Vec", "alloc::collections::vec_deque::VecDeque", "alloc::vec::into_iter::IntoIter"]
                .iter()
                .map(|owner| format!("{owner}<{element}, alloc::alloc::Global>"))
                .collect()
        }
        _ => Vec::new(),
    };
    names.iter().filter_map(|name| layouts.by_name(name)).collect()
}
