//! The order of siblings and rows.

use stackglass_profile::Frame;
use std::cmp::Ordering;

/// File, function, line; frames of which nothing is known last.
pub(crate) fn by_file_func_line(a: &Frame, b: &Frame) -> Ordering {
    a.is_unknown()
        .cmp(&b.is_unknown())
        .then_with(|| if a.is_unknown() { Ordering::Equal } else { a.file.as_bytes().cmp(b.file.as_bytes()) })
        .then_with(|| a.func.as_bytes().cmp(b.func.as_bytes()))
        .then_with(|| a.line.cmp(&b.line))
        .then_with(|| a.nameless_module().cmp(b.nameless_module()))
}
