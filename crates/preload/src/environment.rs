//! The environment of the program's children.
//!
//! If children are profiled, it stays as the launcher made it. If only one process is, that process removes the launcher's
//! entries before the program sees them; a user's own LD_PRELOAD stays.

use core::ffi::{CStr, c_char};
use stackglass_wire::SESSION_ENV;

/// File name of this library, the end of its entry in LD_PRELOAD.
const LIBRARY: &[u8] = b"libstackglass_preload.so";

/// Whether the C library has an environment yet. It has none before its own initialisation.
pub fn is_there() -> bool {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: a word of the C library, which stays.
    unsafe { !environ.is_null() }
}

/// The session folder, from the environment.
pub fn session_folder() -> Option<&'static CStr> {
    let mut name = [0u8; 32];
    name[..SESSION_ENV.len()].copy_from_slice(SESSION_ENV.as_bytes());
    // SAFETY: the name ends with a zero byte; the value is in the environment, which does not change while the loader
    // runs constructors.
    unsafe {
        let value = libc::getenv(name.as_ptr().cast());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Whether a variable has this value. For tests and benchmarks.
pub fn has(name: &CStr, wanted: &CStr) -> bool {
    // SAFETY: as in `session_folder`.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        !value.is_null() && CStr::from_ptr(value) == wanted
    }
}

/// Removes the session and this library from the environment.
pub fn remove_session() {
    let mut name = [0u8; 32];
    name[..SESSION_ENV.len()].copy_from_slice(SESSION_ENV.as_bytes());
    // SAFETY: names end with a zero byte. The value of LD_PRELOAD is writable memory of the environment, with no other
    // user while the loader runs constructors; it only gets shorter.
    unsafe {
        libc::unsetenv(name.as_ptr().cast());
        let value = libc::getenv(c"LD_PRELOAD".as_ptr());
        if value.is_null() {
            return;
        }
        let length = CStr::from_ptr(value).to_bytes().len();
        let text = core::slice::from_raw_parts_mut(value.cast::<u8>(), length);
        let left = remove_entries(text);
        *value.add(left) = 0 as c_char;
        if left == 0 {
            libc::unsetenv(c"LD_PRELOAD".as_ptr());
        }
    }
}

/// Removes the entries of this library from a list separated by colons or blanks, in place. Returns the new length.
fn remove_entries(list: &mut [u8]) -> usize {
    let is_separator = |b: u8| b == b':' || b == b' ';
    let (mut from, mut to) = (0, 0);
    while from < list.len() {
        let end = list[from..].iter().position(|b| is_separator(*b)).map_or(list.len(), |n| from + n);
        let ours = list[from..end].ends_with(LIBRARY);
        if !ours && end > from {
            if to > 0 {
                list[to] = b':';
                to += 1;
            }
            list.copy_within(from..end, to);
            to += end - from;
        }
        from = end + 1;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_entry_of_this_library_is_removed() {
        let left = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let n = remove_entries(&mut bytes);
            String::from_utf8(bytes[..n].to_vec()).unwrap()
        };
        assert_eq!(left("/a/libstackglass_preload.so"), "");
        assert_eq!(left("/a/libstackglass_preload.so:/usr/lib/libjemalloc.so"), "/usr/lib/libjemalloc.so");
        assert_eq!(left("/x.so /a/libstackglass_preload.so y.so"), "/x.so:y.so");
        assert_eq!(left("/x.so"), "/x.so");
        assert_eq!(left(""), "");
        assert_eq!(left("::"), "");
    }
}
