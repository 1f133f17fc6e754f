//! Which module is mapped at an address of one process image, as modules come and go.

use crate::{Location, ModuleIndex};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Largest number of modules of one image at a time; further ones are not recorded.
const MOST: usize = 1 << 16;

/// Where a module is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedRange {
    /// First address.
    pub low: u64,
    /// Address after the last.
    pub high: u64,
    /// Address in memory minus address in the file.
    pub bias: u64,
}

/// A module and the end of its mapping.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    high: u64,
    bias: u64,
    id: u32,
    module: ModuleIndex,
}

/// The currently mapped modules, by their first address, without overlaps.
#[derive(Clone, Default, Debug)]
pub struct AddressSpace {
    mapped: BTreeMap<u64, Mapped>,
    lows: HashMap<u32, u64>,
}

impl AddressSpace {
    /// A module was mapped. It replaces whatever was there before. `id` is its number in the image, which is never used again.
    pub fn load(&mut self, id: u32, module: ModuleIndex, mapping: MappedRange) {
        let MappedRange { low, high, bias } = mapping;
        self.unload(id);
        if low >= high {
            return;
        }
        while let Some((_, under)) = self.mapped.range(..high).next_back()
            && under.high > low
        {
            self.unload(under.id);
        }
        if self.mapped.len() < MOST {
            self.mapped.insert(low, Mapped { high, bias, id, module });
            self.lows.insert(id, low);
        }
    }

    /// The module with this number was unmapped.
    pub fn unload(&mut self, id: u32) {
        if let Some(low) = self.lows.remove(&id) {
            self.mapped.remove(&low);
        }
    }

    /// The location of an address: independent of where the module is mapped.
    pub fn locate(&self, address: u64) -> Location {
        match self.mapped.range(..=address).next_back() {
            Some((_, m)) if address < m.high => {
                Location { module: Some(m.module), offset: address.wrapping_sub(m.bias) }
            }
            _ => Location { module: None, offset: address },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(space: &AddressSpace, address: u64) -> (Option<u32>, u64) {
        let place = space.locate(address);
        (place.module.map(|m| m.0), place.offset)
    }

    #[test]
    fn an_address_belongs_to_the_module_mapped_there_now() {
        let mut space = AddressSpace::default();
        space.load(1, ModuleIndex(7), MappedRange { low: 0x1000, high: 0x2000, bias: 0x800 });
        space.load(2, ModuleIndex(8), MappedRange { low: 0x3000, high: 0x4000, bias: 0x3000 });
        assert_eq!(at(&space, 0xfff), (None, 0xfff));
        assert_eq!(at(&space, 0x1000), (Some(7), 0x800));
        assert_eq!(at(&space, 0x1fff), (Some(7), 0x17ff));
        assert_eq!(at(&space, 0x2000), (None, 0x2000));
        assert_eq!(at(&space, 0x3004), (Some(8), 4));
        // Unmapped unnoticed, and replaced by another module.
        space.load(3, ModuleIndex(9), MappedRange { low: 0x1800, high: 0x2800, bias: 0x1800 });
        assert_eq!(at(&space, 0x1000), (None, 0x1000));
        assert_eq!(at(&space, 0x1800), (Some(9), 0));
        space.unload(3);
        assert_eq!(at(&space, 0x1800), (None, 0x1800));
    }
}
