//! What a graph is made of: a process, its blocks with their sites, and where the search for reachable blocks begins.

use crate::blocks::Blocks;
use crate::references::BlockType;
use crate::root::Root;
use crate::site::Site;
use stackglass_layouts::Layouts;
use stackglass_process_view::core_image::CoreImage;
use stackglass_profile::heap_graph::AllocationStacks;

/// Everything that a graph is made of.
pub struct Input<'a> {
    /// The process.
    pub image: &'a CoreImage,
    /// Its live blocks.
    pub blocks: &'a Blocks,
    /// By the blocks' [`SiteId`](crate::blocks::SiteId). Blocks with other numbers have the first site.
    pub sites: &'a [Site],
    /// The stacks of the sites.
    pub stacks: &'a AllocationStacks,
    /// Layouts of the types in sites and roots.
    pub layouts: &'a Layouts,
    /// Where the search for reachable blocks begins.
    pub roots: &'a [Root],
    /// Address in memory minus address in the file of each module of the layouts.
    pub biases: &'a [u64],
    /// Name text by its content.
    pub with_texts: bool,
    /// Give all nodes the size 1, so that retained sizes are numbers of nodes.
    pub all_one: bool,
}

impl Input<'_> {
    /// The place of a block's site in the list: the first, if the list does not have it.
    pub(super) fn site(&self, block: usize) -> usize {
        let site = self.blocks.sites[block].0 as usize;
        if site < self.sites.len() { site } else { 0 }
    }

    /// What a block contains.
    pub(super) fn contains(&self, block: usize) -> Option<BlockType> {
        self.sites[self.site(block)].contains
    }
}
