//! What tells blocks of unknown type apart: what their first word points to, or that they begin with text.
//!
//! This is no type: an object may be a part of another one, and memory that was not written yet may hold an earlier block's
//! words. So these blocks stay unknown, and their names say only what they begin with.

use super::memory::BlockMemory;
use crate::blocks::{Blocks, SiteId};
use crate::site::Site;
use foldhash::HashMap;
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::{UNKNOWN_TEXT, UNKNOWN_TYPE, sanitize, unknown_that};

/// Fewest bytes of text. The six lowest bytes of an address may be text by chance; the seventh is zero.
const SHORTEST: usize = 7;
/// Bytes of a block that are read.
const READ: u64 = 24;

/// Names of what begins at addresses in the file of the module with this index; `None` if nothing or several things do.
pub type NamesOfStarts<'a> = &'a dyn Fn(usize, &[u64]) -> Vec<Option<String>>;

/// Gives blocks of which nothing is known sites that say what they begin with.
pub fn tell_apart(
    image: &CoreImage,
    modules: &[LoadedModule],
    names: NamesOfStarts<'_>,
    blocks: &mut Blocks,
    sites: &mut Vec<Site>,
) {
    let is_unknown: Vec<bool> =
        sites.iter().map(|site| site.contains.is_none() && site.name == UNKNOWN_TYPE).collect();
    let unknown =
        |site: SiteId| is_unknown.get(site.0 as usize).or(is_unknown.first()).copied().unwrap_or(false);
    let mut memory = BlockMemory::new(image);
    let mut pointed: HashMap<u64, Vec<usize>> = HashMap::default();
    let mut described: Vec<(usize, String)> = Vec::new();
    for index in (0..blocks.len()).filter(|index| unknown(blocks.sites[*index])) {
        let size = blocks.size(index).min(READ);
        let bytes = memory.read(blocks.addresses[index], size);
        if begins_with_text(bytes) {
            described.push((index, UNKNOWN_TEXT.to_owned()));
        } else if let Some(word) = bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
            && word != 0
        {
            pointed.entry(word).or_default().push(index);
        }
    }
    for (number, module) in modules.iter().enumerate() {
        let range = module.module.range();
        let words: Vec<u64> = pointed.keys().copied().filter(|word| range.contains(word)).collect();
        if words.is_empty() {
            continue;
        }
        let addresses: Vec<u64> = words.iter().map(|word| word.wrapping_sub(module.bias())).collect();
        for (word, name) in words.iter().zip(names(number, &addresses)) {
            let Some(name) = name else { continue };
            let same = pointed.get(word).into_iter().flatten();
            described.extend(
                same.map(|index| (*index, unknown_that(&format!("begins with &{}", sanitize(&name))))),
            );
        }
    }
    let mut known: HashMap<(u32, String), SiteId> = HashMap::default();
    for (index, name) in described {
        let site = blocks.sites[index].0;
        blocks.sites[index] = *known.entry((site, name)).or_insert_with_key(|(site, name)| {
            let unknown = sites.get(*site as usize).unwrap_or(&sites[0]);
            let described = Site { name: name.clone(), ..unknown.clone() };
            sites.push(described);
            SiteId(sites.len() as u32 - 1)
        });
    }
}

/// Whether there is text at the start of a block, up to a zero or to what is read of it.
fn begins_with_text(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| !(b' '..=b'~').contains(byte) && !b"\t\n\r".contains(byte));
    let is_ended = end.is_none_or(|end| bytes[end] == 0);
    end.unwrap_or(bytes.len()) >= SHORTEST && is_ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_longer_than_an_address() {
        assert!(begins_with_text(b"user 12\0\x01"));
        assert!(begins_with_text(b"GET /index.html HTTP/1.1\r\nHost: a"));
        assert!(!begins_with_text(&0x5565_5575_6320u64.to_le_bytes()));
        assert!(!begins_with_text(b"user 12\xff"));
        assert!(!begins_with_text(b""));
    }
}
