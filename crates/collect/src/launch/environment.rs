//! The environment of a program, entry by entry: what is not changed stays as it is, in its place.
//!
//! An environment is a list of texts. Entries without `=`, without a name, or with the name of another entry are rare and legal, and
//! the order can be seen. `Command::env` sorts entries and leaves such ones out.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;

/// Entries as execve(2) takes them.
pub(super) struct Environment {
    entries: Vec<CString>,
}

impl Environment {
    /// That of this process, as it was started.
    pub(super) fn inherited() -> Environment {
        match std::fs::read("/proc/self/environ") {
            Ok(bytes) => Environment::parse(&bytes),
            Err(_) => {
                let mut environment = Environment { entries: Vec::new() };
                for (name, value) in std::env::vars_os() {
                    environment.set(&name, &value);
                }
                environment
            }
        }
    }

    /// Entries that each end with a zero byte.
    fn parse(bytes: &[u8]) -> Environment {
        let Some(bytes) = bytes.strip_suffix(b"\0") else { return Environment { entries: Vec::new() } };
        // There is no zero byte in a part.
        let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| CString::new(entry).ok());
        Environment { entries: entries.collect() }
    }

    /// Gives a variable a value, in the place of its first entry. Other entries with its name go.
    pub(super) fn set(&mut self, name: &OsStr, value: &OsStr) {
        let mut entry = name.to_os_string().into_vec();
        entry.push(b'=');
        let start = entry.clone();
        entry.extend_from_slice(value.as_bytes());
        // A value with a zero byte cannot be passed on.
        let Ok(entry) = CString::new(entry) else { return };
        let place = self.entries.iter().position(|known| known.as_bytes().starts_with(&start));
        self.entries.retain(|known| !known.as_bytes().starts_with(&start));
        let place = place.unwrap_or(self.entries.len());
        self.entries.insert(place, entry);
    }

    /// The list for execve(2). It refers to this value.
    pub(super) fn pointers(&self) -> Vec<*const c_char> {
        self.entries.iter().map(|entry| entry.as_ptr()).chain([ptr::null()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(environment: &Environment) -> Vec<&[u8]> {
        environment.entries.iter().map(|entry| entry.as_bytes()).collect()
    }

    #[test]
    fn what_is_not_changed_stays_in_its_place() {
        let mut environment = Environment::parse(b"B=1\0A=1\0A=2\0no sign\0=x\0\0C=\xff\0");
        environment.set(OsStr::new("A"), OsStr::new("3"));
        environment.set(OsStr::new("D"), OsStr::new(""));
        let expected: [&[u8]; 7] = [b"B=1", b"A=3", b"no sign", b"=x", b"", b"C=\xff", b"D="];
        assert_eq!(texts(&environment), expected);
        assert_eq!(environment.pointers().len(), 8);
        assert!(environment.pointers()[7].is_null());
        assert!(texts(&Environment::parse(b"")).is_empty());
    }

    #[test]
    fn this_process_has_one() {
        let path = std::env::var_os("PATH").expect("tests have a path");
        let entry = [b"PATH=", path.as_bytes()].concat();
        assert!(texts(&Environment::inherited()).contains(&&entry[..]));
    }
}
