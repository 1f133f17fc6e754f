//! The kernel's library `[vdso]`, which is in no file and is therefore copied from this process. It is the same for all
//! processes of a running kernel.

use crate::Error;
use crate::mapped::Mapped;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Name of the vdso in lists of modules.
pub const NAME: &str = "[vdso]";

/// Larger than any vdso (two pages so far).
const LARGEST: u64 = 1 << 20;

/// Copies the vdso of this process.
pub fn read() -> Result<Mapped, Error> {
    copy()
        .map(|bytes| Mapped::from_memory(NAME, bytes))
        .map_err(|source| Error::Read { path: PathBuf::from(NAME), source })
}

fn copy() -> io::Result<Vec<u8>> {
    // Names of mapped files may have any bytes.
    let maps = std::fs::read("/proc/self/maps")?;
    let maps = String::from_utf8_lossy(&maps);
    let (start, end) = maps
        .lines()
        .filter(|line| line.ends_with(NAME))
        .find_map(range_of)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this process has none"))?;
    let size = end.checked_sub(start).filter(|size| *size <= LARGEST);
    let size = size.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its size is absurd"))?;
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// `7ffd1000-7ffd3000 r-xp …`
fn range_of(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_vdso_is_an_elf_file() {
        let vdso = super::read().unwrap();
        assert_eq!(&vdso[..4], b"\x7fELF");
    }
}
