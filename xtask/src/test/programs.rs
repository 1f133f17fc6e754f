//! Checks that the programs which the tests start exist, and names the Debian packages of missing ones.

use super::Tally;
use crate::run::on_path;
use anyhow::Result;
use std::path::Path;

/// A program or header, and its Debian package.
const NEEDED: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("c++", "g++"),
    ("strip", "binutils"),
    ("objcopy", "binutils"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("gdb", "gdb"),
    ("strace", "strace"),
    ("unshare", "util-linux"),
    ("/usr/include/stdio.h", "libc6-dev"),
];

/// One check for all of them.
pub fn check() -> Result<Tally> {
    let there = |name: &str| if name.starts_with('/') { Path::new(name).exists() } else { on_path(name) };
    let mut missing: Vec<&str> =
        NEEDED.iter().filter(|(name, _)| !there(name)).map(|(_, package)| *package).collect();
    missing.dedup();
    if !missing.is_empty() {
        eprintln!("missing: install with\n    apt-get install -y {}", missing.join(" "));
    }
    Ok(Tally::one(missing.is_empty()))
}
