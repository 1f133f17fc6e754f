//! The threads of the process: how they are found, what is stored of each, and what the kernel says of them.

pub(crate) mod discovery;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod open_files;
pub(crate) mod own;
pub(crate) mod recently_exited;
pub(crate) mod status;
pub(crate) mod table;
