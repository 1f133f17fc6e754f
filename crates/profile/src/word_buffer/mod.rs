//! A profile in the form of Julia's `Profile`: a buffer of words, and a dictionary of its addresses.
//!
//! It belongs to the model, not to the reports: `.jlprof` files contain such a pair, and `stackglass-files` must not
//! depend on reports.

mod data;
mod dictionary;
mod expand;
mod flatten;

pub use data::{ASLEEP, AWAKE, Block, Blocks, Data, DataError, OVERHEAD_WORDS, TASK};
pub use dictionary::Dictionary;
pub use expand::Addresses;
pub use flatten::{NoAddressLeft, flatten};
