//! Memory that notes which of its pages are read: an image stores those, beside all that the program could write.

use crate::stored::PAGE;
use stackglass_process_view::core_image::{CoreImage, Mapping, Memory};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Addresses of pages that were read.
#[derive(Clone, Default)]
pub struct Noted(Arc<Mutex<BTreeSet<u64>>>);

struct Noting {
    memory: Box<dyn Memory>,
    noted: Noted,
}

impl Noted {
    /// The same image, whose reads are noted from now on.
    pub fn note(&self, image: CoreImage) -> CoreImage {
        CoreImage { memory: Box::new(Noting { memory: image.memory, noted: self.clone() }), ..image }
    }

    /// All that an image has to store: pages that were read, and pages with data that the program could write.
    pub fn pages(&self, image: &CoreImage) -> BTreeMap<u64, Box<[u8]>> {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for mapping in image.mappings.iter().filter(|mapping| is_own(mapping)) {
            let mut resident = vec![false; ((mapping.range.end - mapping.range.start) as usize) / PAGE];
            image.memory.resident(mapping.range.start, &mut resident);
            let pages = mapping.range.clone().step_by(PAGE).zip(resident);
            addresses.extend(pages.filter_map(|(address, has_data)| has_data.then_some(address)));
        }
        let mut pages = BTreeMap::new();
        for address in addresses {
            let mut page = vec![0; PAGE];
            if image.memory.read(address, &mut page) == PAGE {
                pages.insert(address, page.into());
            }
        }
        pages
    }
}

fn is_own(mapping: &Mapping) -> bool {
    mapping.readable && mapping.writable && !mapping.shared
}

impl Memory for Noting {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let count = self.memory.read(address, into);
        let first = address - address % PAGE as u64;
        // Nothing, if nothing could be read.
        let end = if count == 0 { first } else { address.saturating_add(count as u64) };
        let pages = (first..end).step_by(PAGE);
        self.noted.0.lock().unwrap_or_else(PoisonError::into_inner).extend(pages);
        count
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        self.memory.resident(address, pages);
    }
}
