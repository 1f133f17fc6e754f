//! Blocks that are read in pieces, so that the memory needed does not grow with the largest buffer of a program.

use super::slots::Compiled;
use super::walk::COUNTERS;
use super::{BlockType, Extent, Reference, References};
use crate::window::Window;
use stackglass_process_view::core_image::CoreImage;

/// Blocks of more bytes are read in pieces of about this size.
const PIECE: u64 = 1 << 20;

impl References<'_> {
    /// As [`References::of_block`] for a block of `size` bytes that are not read yet.
    pub(crate) fn of_block_in(
        &mut self,
        window: &mut Window<'_>,
        contains: BlockType,
        extent: Extent,
        (address, size): (u64, u64),
        image: &CoreImage,
        each: &mut dyn FnMut(Reference<'_>),
    ) {
        match contains {
            // The elements of a ring do not begin at its begin.
            BlockType::Elements(id) if size > PIECE && extent.first == 0 => {
                let compiled = self.compiled(id);
                self.elements_in(window, &compiled, extent, (address, size), image, each);
            }
            BlockType::CountedElements(id) | BlockType::SharedElements(id) if size > PIECE => {
                if image.word(address).is_some_and(|strong| strong != 0) {
                    let compiled = self.compiled(id);
                    let elements = (address.saturating_add(COUNTERS), size - COUNTERS);
                    self.elements_in(window, &compiled, extent, elements, image, each);
                }
            }
            BlockType::Table(id) if size > PIECE => {
                let compiled = self.entry(id);
                self.table_in(window, &compiled, extent.elements, (address, size), image, each);
            }
            _ => self.of_block(contains, extent, address, window.read(address, size), image, each),
        }
    }

    fn elements_in(
        &mut self,
        window: &mut Window<'_>,
        compiled: &Compiled,
        extent: Extent,
        (address, size): (u64, u64),
        image: &CoreImage,
        each: &mut dyn FnMut(Reference<'_>),
    ) {
        let Some(count) = compiled.count(extent, size) else { return };
        let step = (PIECE / compiled.size).max(1);
        let mut first = 0;
        while first < count {
            let behind = first.saturating_add(step).min(count);
            let at = address.saturating_add(first * compiled.size);
            // Pages that were never written have no pointers.
            let left = (count - first) * compiled.size;
            let empty = if left > PIECE { window.empty(at, left) } else { 0 };
            if empty >= compiled.size {
                first += (empty / compiled.size).min(count - first);
                continue;
            }
            let bytes = window.read(at, (behind - first) * compiled.size);
            if bytes.is_empty() {
                return;
            }
            self.walk(at, bytes, image, each).part(compiled, first..behind, count);
            first = behind;
        }
    }

    fn table_in(
        &mut self,
        window: &mut Window<'_>,
        compiled: &Compiled,
        buckets: Option<u64>,
        (address, size): (u64, u64),
        image: &CoreImage,
        each: &mut dyn FnMut(Reference<'_>),
    ) {
        let Some((buckets, control)) = compiled.table(buckets, size) else { return };
        let step = (PIECE / compiled.size).max(1);
        let mut first = 0;
        while first < buckets {
            let behind = first.saturating_add(step).min(buckets);
            let marks = window.read(address.saturating_add(control + first), behind - first).to_vec();
            let at = address.saturating_add(control - behind * compiled.size);
            let length = (behind - first) * compiled.size;
            let slots = window.read(at, length);
            if (slots.len() as u64) < length {
                return;
            }
            self.walk(at, slots, image, each).buckets(compiled, &marks, first, buckets);
            first = behind;
        }
    }
}
