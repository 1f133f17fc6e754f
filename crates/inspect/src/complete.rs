//! Whether all that was wanted of a frozen process was read while it stood still.

use stackglass_attach::frozen::{FreezeError, FrozenProcess};

/// Whether the memory that was read still exists. What was read of a copy that has ended may be incomplete, or nothing.
///
/// # Errors
/// `ended` if process `pid` is gone. If it goes on: why its copy ended, if that is known, else `copy_ended`.
pub(crate) fn check<E: From<FreezeError>>(
    process: &FrozenProcess,
    pid: u32,
    ended: impl FnOnce(u32) -> E,
    copy_ended: impl FnOnce(u32) -> E,
) -> Result<(), E> {
    match (process.is_alive() && !process.has_changed(), stackglass_procfs::process::is_alive(pid)) {
        (true, _) => Ok(()),
        (false, true) => Err(process.refused_stops().map_or_else(|| copy_ended(pid), E::from)),
        (false, false) => Err(ended(pid)),
    }
}
