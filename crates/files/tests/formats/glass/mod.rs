//! `.glass` files: what is written is what is read, whole or cut, and nothing hostile does harm.

mod cuts;
mod names_of_files;
mod parts;
mod round_trip;
mod stranger;
