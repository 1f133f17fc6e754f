//! Julia's `flatten`: gives inlined frames their own addresses, for tools that support one frame per address.

use crate::{Data, Dictionary};
use foldhash::HashMap;

/// All addresses are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no address is left for an inlined frame")]
pub struct NoAddressLeft;

/// Gives each inlined frame a separate address.
///
/// Addresses with exactly one frame stay. An address with more frames is replaced by a new address for each frame,
/// innermost first. New addresses count down from 2^64 - 2 and skip those in use. An address without frames is removed.
/// Metadata is unchanged.
///
/// ```
/// use stackglass_profile::{Data, Dictionary, Frame, flatten};
///
/// let frame = |name: &str| Frame { func: name.into(), ..Frame::unknown(0) };
/// let mut dictionary = Dictionary::new();
/// dictionary.set(16, [Frame { inlined: true, ..frame("inlined") }, frame("main")]);
///
/// let (data, flat) = flatten(&Data::new(vec![16, 0]), &dictionary)?;
/// assert_eq!(data.words(), [u64::MAX - 1, u64::MAX - 2, 0]);
/// assert_eq!(&*flat.get(u64::MAX - 2).unwrap()[0].func, "main");
/// # Ok::<(), stackglass_profile::NoAddressLeft>(())
/// ```
///
/// # Errors
/// If no addresses are left.
pub fn flatten(data: &Data, dictionary: &Dictionary) -> Result<(Data, Dictionary), NoAddressLeft> {
    let mut flat = dictionary.without_frames();
    let mut replaced: HashMap<u64, Vec<u64>> = HashMap::default();
    let mut next = u64::MAX - 1;
    for address in dictionary.addresses() {
        let frames = dictionary.get(address).unwrap_or(&[]);
        if let [one] = frames {
            flat.set(address, [one.clone()]);
            if dictionary.dispatches(address) {
                flat.set_dispatches(address);
            }
            continue;
        }
        let mut invented = Vec::with_capacity(frames.len());
        for frame in frames {
            while next > 0 && dictionary.get(next).is_some() {
                next -= 1;
            }
            if next == 0 {
                return Err(NoAddressLeft);
            }
            flat.set(next, [frame.clone()]);
            invented.push(next);
            next -= 1;
        }
        // The innermost frame is the caller.
        if let Some(innermost) = invented.first().filter(|_| dictionary.dispatches(address)) {
            flat.set_dispatches(*innermost);
        }
        replaced.insert(address, invented);
    }
    let words = data.words();
    let mut flat_words = Vec::with_capacity(words.len());
    let metadata = data.metadata_mask();
    for (word, is_metadata) in words.iter().zip(metadata) {
        match replaced.get(word).filter(|_| !is_metadata) {
            Some(invented) => flat_words.extend(invented),
            None => flat_words.push(*word),
        }
    }
    Ok((Data::new(flat_words), flat))
}
