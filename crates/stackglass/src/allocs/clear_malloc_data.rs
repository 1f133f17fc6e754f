//! A program forgets its own allocations, whether the crate or the command records them.

use stackglass_heap::own_recording::is_delegated;
use stackglass_wire::CLEAR_ALLOCATIONS_FILE;
use stackglass_wire::heap::HEAP_FILE_PREFIX;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for the command.
const PATIENCE: Duration = Duration::from_secs(3);

/// Forgets all allocations so far, as Julia's `Profile.clear_malloc_data()`: what comes after is counted from here.
///
/// Under `stackglass record --allocs` and `--track-allocation`, the command forgets those of all its processes. Its samples of time
/// stay. Otherwise this is [`allocs::clear`](crate::allocs::clear). Without a recording, nothing happens.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// # fn main() -> std::io::Result<()> {
/// let table: Vec<u64> = (0..1000).collect(); // set-up
/// stackglass::clear_malloc_data()?;
/// assert_eq!(table.iter().sum::<u64>(), 499_500); // what the `.mem` files shall show
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the command cannot be asked, or does not answer within three seconds.
pub fn clear_malloc_data() -> io::Result<()> {
    if !is_delegated() {
        crate::allocs::clear();
        return Ok(());
    }
    // No table: nothing has been counted.
    let Some(folder) = session_folder(&fs::read("/proc/self/maps")?) else { return Ok(()) };
    let request = folder.join(CLEAR_ALLOCATIONS_FILE);
    OpenOptions::new().write(true).create(true).truncate(true).open(&request)?;
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if !request.exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = fs::remove_file(request);
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "stackglass does not answer: it is stopped, or does not record",
    ))
}

/// The folder of the tables in which this process counts.
fn session_folder(maps: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        let path = Path::new(std::ffi::OsStr::from_bytes(&line[start..]));
        let is_table = path.file_name()?.as_bytes().starts_with(HEAP_FILE_PREFIX.as_bytes());
        let folder = path.parent()?;
        (is_table && folder.file_name()?.as_bytes().starts_with(b"stackglass-")).then(|| folder.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_tables() {
        let table = format!("7f00-7f10 rw-s 0 00:1 7  /dev/shm/stackglass-0-1-2/{HEAP_FILE_PREFIX}9-1\n");
        let maps = format!(
            "5500-5600 r-xp 0 00:1 5  /home/{HEAP_FILE_PREFIX}9/app\n7e00-7e10 rw-p 0 00:0 0\n{table}"
        );
        assert_eq!(session_folder(maps.as_bytes()).unwrap(), Path::new("/dev/shm/stackglass-0-1-2"));
        assert_eq!(session_folder(b"5500-5600 r-xp 0 00:1 5  /home/app\n"), None);
    }
}
