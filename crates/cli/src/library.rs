//! The preload library inside this executable.

use stackglass_collect::launch::Library;

const BYTES: &[u8] = include_bytes!(env!("STACKGLASS_LIBRARY"));
/// Changes with every byte of the library.
const NAME: &str = concat!("libstackglass-", env!("STACKGLASS_LIBRARY_HASH"), ".so");

/// Puts it where programs can load it.
pub(crate) fn unpack() -> Result<Library, String> {
    Library::unpack(BYTES, NAME).map_err(|error| {
        format!(
            "cannot unpack the preload library: {error}; set XDG_CACHE_HOME to a folder of yours that can be written to"
        )
    })
}
