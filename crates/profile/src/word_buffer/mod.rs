//! The profile as Julia's `Profile` keeps it: a buffer of words, and a dictionary of the addresses in it.
//!
//! This is part of the model, not of the reports: `.jlprof` files hold such a pair, and crates that read and write
//! files depend on nothing that prints.

mod data;
mod dictionary;
mod expand;
mod flatten;

pub use data::{ASLEEP, AWAKE, Block, Blocks, Data, DataError, OVERHEAD_WORDS, TASK};
pub use dictionary::Dictionary;
pub use expand::Addresses;
pub use flatten::{NoAddressLeft, flatten};
