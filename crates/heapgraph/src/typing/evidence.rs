//! What types are inferred from: blocks, variables, and what the recorder knows.

use super::fit::Exactness;
use crate::blocks::Blocks;
use crate::root::Root;
use crate::site::Site;
use stackglass_layouts::Layouts;
use stackglass_process_view::core_image::CoreImage;

/// What types are inferred from.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The process.
    pub image: &'a CoreImage,
    /// Its live blocks.
    pub blocks: &'a Blocks,
    /// What the recorder knows, by the sites of blocks. Empty if allocations were not recorded. Blocks with a site other than the
    /// first have requested sizes, the others usable sizes.
    pub sites: &'a [Site],
    /// Layouts of its modules.
    pub layouts: &'a Layouts,
    /// For each module: address in memory minus address in the file.
    pub biases: &'a [u64],
    /// Its variables.
    pub roots: &'a [Root],
}

impl Evidence<'_> {
    /// The site of a block, if the recorder knows it.
    pub(super) fn site(&self, block: usize) -> Option<&Site> {
        let site = self.blocks.sites.get(block).filter(|site| site.0 != 0)?;
        self.sites.get(site.0 as usize)
    }

    /// How exactly the size of a block must agree.
    pub(super) fn exactness(&self, block: usize, of_usable: Exactness) -> Exactness {
        if self.site(block).is_some() { Exactness::Asked } else { of_usable }
    }
}
