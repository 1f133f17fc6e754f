//! Interpreters whose own allocators divide blocks: a snapshot does not show their objects.

use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::frame::file_name;

/// Values of `PYTHONMALLOC` with which each object is a block.
const WITH_MALLOC: [&[u8]; 2] = [b"malloc", b"malloc_debug"];

/// A remark for the user, if Python runs in the process and its objects are no blocks.
pub(super) fn remark(pid: u32, modules: &[LoadedModule]) -> Option<String> {
    let is_python = modules.iter().any(|module| is_python(file_name(&module.path)));
    let environment = || std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    (is_python && !objects_are_blocks(&environment())).then(|| {
        "Python's objects lie in its own allocator: `PYTHONMALLOC=malloc` in the environment of the program shows each".into()
    })
}

/// The names of CPython's executable and library: `python3`, `python3.11`, `libpython3.11.so.1.0`.
fn is_python(name: &str) -> bool {
    let rest = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn objects_are_blocks(environment: &[u8]) -> bool {
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|one| one.strip_prefix(b"PYTHONMALLOC=").is_some_and(|value| WITH_MALLOC.contains(&value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_known_by_its_name() {
        let named = ["python3", "python3.11", "libpython3.so", "libpython3.12.so.1.0"];
        assert!(named.into_iter().all(is_python));
        assert!(!["python3-config", "python", "libpythonic3.so", "mypython3", ""].into_iter().any(is_python));
    }

    #[test]
    fn its_objects_are_blocks_if_it_uses_malloc() {
        assert!(objects_are_blocks(b"A=1\0PYTHONMALLOC=malloc\0"));
        assert!(objects_are_blocks(b"PYTHONMALLOC=malloc_debug"));
        for other in ["PYTHONMALLOC=pymalloc", "XPYTHONMALLOC=malloc", ""] {
            assert!(!objects_are_blocks(other.as_bytes()), "{other}");
        }
    }
}
