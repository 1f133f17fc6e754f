//! The preload library, embedded in this executable.

use stackglass_collect::launch::Library;
use stackglass_procfs::limits::too_many_files;

const BYTES: &[u8] = include_bytes!(env!("STACKGLASS_LIBRARY"));
/// The file name; it contains a hash of the library.
const NAME: &str = concat!("libstackglass-", env!("STACKGLASS_LIBRARY_HASH"), ".so");

/// Writes the library to a file that programs can load.
pub(crate) fn unpack() -> Result<Library, String> {
    Library::unpack(BYTES, NAME).map_err(|error| {
        too_many_files(&error).unwrap_or_else(|| {
            format!(
                "cannot unpack the preload library: {error}; set XDG_CACHE_HOME to a writable folder of your own"
            )
        })
    })
}
