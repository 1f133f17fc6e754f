//! Names, locations and numbers as shown in pictures. Names are untrusted: [`sanitize`] escapes them.

use crate::{Graph, Node, Status};
use stackglass_profile::Frame;
pub(crate) use stackglass_profile::sanitize;
use stackglass_report::numbers::grouped;
pub(crate) use stackglass_report::numbers::percent_with_decimal as percent;
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// The name of a frame, or its module in brackets if nothing else is known.
///
/// ```
/// use stackglass_flame::frame_name;
/// use stackglass_profile::Frame;
///
/// assert_eq!(frame_name(&Frame { module: "/usr/lib/libz.so.1".into(), ..Frame::unknown(7) }), "[libz.so.1]");
/// ```
pub fn name(frame: &Frame) -> Cow<'_, str> {
    match (&*frame.func, frame.module.rsplit('/').next().unwrap_or("")) {
        ("", "") if frame.address == 0 => Cow::Borrowed("[unknown]"),
        ("", "") => Cow::Owned(format!("[{:#x}]", frame.address)),
        ("", module) if module.starts_with('[') => sanitize(module),
        ("", module) => Cow::Owned(format!("[{}]", sanitize(module))),
        (func, _) => sanitize(func),
    }
}

/// The name of a box. The root of a graph of samples has no frame and is `all`.
pub(crate) fn node_name<'g>(graph: &'g Graph, node: &Node) -> Cow<'g, str> {
    let frame = graph.frame(node);
    if node.depth == 0 && frame.is_unknown() { Cow::Borrowed("all") } else { name(frame) }
}

/// The source file of a frame as shown in reports, or its module.
pub(crate) fn file<'g>(graph: &'g Graph, frame: &'g Frame) -> Cow<'g, str> {
    match graph.short_path(&frame.file) {
        Some(short) if !short.prefix.is_empty() => {
            sanitize(&format!("{}/{}", short.prefix, short.rest)).into_owned().into()
        }
        _ if frame.file.is_empty() => sanitize(&frame.module),
        _ => sanitize(&frame.file),
    }
}

/// File, line and whether it is inlined.
pub(crate) fn place(graph: &Graph, frame: &Frame) -> String {
    let mut place = file(graph, frame).into_owned();
    if !frame.file.is_empty() && frame.line > 0 {
        place += &format!(":{}", frame.line);
    }
    if frame.inlined {
        place += " [inlined]";
    }
    place
}

/// The mark of a status bit: a line along the lower edge of a box, in the colour of its text.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) bit: Status,
    pub(crate) meaning: &'static str,
    /// Its class in SVG pictures.
    pub(crate) class: &'static str,
    /// Lengths of dashes and gaps; without gaps a line.
    pub(crate) dashes: [usize; 2],
}

pub(crate) const MARKS: [Mark; 3] = [
    Mark { bit: Status::DISPATCH, meaning: "dynamic call", class: "D", dashes: [5, 3] },
    Mark { bit: Status::MEMORY, meaning: "memory management", class: "M", dashes: [1, 0] },
    Mark { bit: Status::RUNTIME, meaning: "runtime start", class: "R", dashes: [1, 3] },
];

/// The status bits that a box shows. No call leads to the root.
pub(crate) fn bits(node: &Node) -> Status {
    if node.depth == 0 { node.status.without(Status::DISPATCH) } else { node.status }
}

/// The mark of a box.
pub(crate) fn mark(node: &Node) -> Option<&'static Mark> {
    MARKS.iter().find(|mark| bits(node).any(mark.bit))
}

/// The label of a box for this many columns: its name, its line if boxes stand for lines, and its share if there is room.
pub(crate) fn node_label(graph: &Graph, node: &Node, name: &str, by_line: bool, columns: usize) -> String {
    let line = graph.frame(node).line;
    let with_line = by_line && line > 0;
    let name = if with_line { Cow::Owned(format!("{name}:{line}")) } else { Cow::Borrowed(name) };
    let Some(text) = label(&name, columns) else { return String::new() };
    let share = percent(node.span.len(), graph.root().span.len());
    // A cut name leaves no room.
    let fits = || name.chars().take(columns).count() + share.chars().count() + 2 <= columns;
    if node.depth > 0 && text == name && fits() { format!("{text}  {share}") } else { text.into_owned() }
}

/// A number with its unit, in the singular for 1: `1 sample`.
pub(crate) fn counted(number: u64, unit: &str) -> String {
    let (word, rest) = unit.split_at(unit.find(' ').unwrap_or(unit.len()));
    let singular = word.strip_suffix('s').filter(|_| number == 1 && !matches!(word, "ms" | "µs"));
    let word = singular.unwrap_or(word);
    format!("{} {}", thousands(number), sanitize(&format!("{word}{rest}")))
}

/// The first word of the unit. The whole unit is shown at the root only.
pub(crate) fn word(unit: &str) -> &str {
    unit.split(' ').next().unwrap_or(unit)
}

/// A number in groups of three digits, with spaces that do not break lines.
pub(crate) fn thousands(number: u64) -> String {
    grouped(number).replace(' ', "\u{a0}")
}

/// The part of a name that fits into this many columns: its last parts, or else its beginning. `None` for fewer than
/// three columns.
pub(crate) fn label(name: &str, columns: usize) -> Option<Cow<'_, str>> {
    if columns < 3 {
        return None;
    }
    // Names may be of any length: only a part is examined.
    let width = |text: &str| text.chars().take(columns + 1).map(|c| c.width().unwrap_or(0)).sum::<usize>();
    if width(name) <= columns {
        return Some(Cow::Borrowed(name));
    }
    let start = name.len().saturating_sub((4 * columns).max(400));
    let start = (start..name.len()).find(|at| name.is_char_boundary(*at))?;
    let end = &name[start..];
    let mut tails = parts(end);
    if let Some(tail) = tails.find(|tail| width(tail) <= columns).filter(|tail| tail.len() >= 3) {
        return Some(Cow::Borrowed(tail));
    }
    let begin = parts(end).last().filter(|last| last.len() >= 3).unwrap_or(name);
    let mut room = columns - 1;
    let cut = begin.chars().take_while(|c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    });
    Some(Cow::Owned(cut.take(columns).chain(['…']).collect()))
}

/// The text behind each `::` of a path, longest first, except between brackets: only `push` for
/// `Vec<std::string>::push`.
pub(crate) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices("::").map(|(at, _)| &path[at + 2..]).filter(|tail| {
        let (mut open, mut before) = (0_i32, ' ');
        tail.starts_with("operator")
            || tail.chars().all(|c| {
                match c {
                    '<' | '(' | '[' | '{' => open += 1,
                    '>' if matches!(before, '-' | '=') => {}
                    '>' | ')' | ']' | '}' => open -= 1,
                    _ => {}
                }
                before = c;
                open >= 0
            })
    })
}

/// Escapes text for XML and HTML elements and attributes.
pub(crate) fn markup(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&#34;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_the_last_parts() {
        assert_eq!(label("a::walk::Worker::run", 30).unwrap(), "a::walk::Worker::run");
        assert_eq!(label("a::walk::Worker::run", 12).unwrap(), "Worker::run");
        assert_eq!(label("a::walk::Worker::run_one_more", 7).unwrap(), "run_on…");
        assert_eq!(label("memmove_unaligned", 5).unwrap(), "memm…");
        assert_eq!(label("memmove", 2), None);
        assert_eq!(
            label("std::vector<int, std::allocator<int> >::push_back(int const&)", 40).unwrap(),
            "push_back(int const&)"
        );
        assert_eq!(label("work(std::string const&, std::string)", 20).unwrap(), "work(std::string co…");
        assert_eq!(label("some::long::path::operator>>", 12).unwrap(), "operator>>");
        assert_eq!(label("core::ptr::drop_in_place", 3).unwrap(), "dr…");
        assert_eq!(label("日本語日本語", 5).unwrap(), "日本…");
        assert!(label(&"\u{301}".repeat(1000), 5).unwrap().chars().count() <= 1000);
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(markup("</script>&\"'"), "&lt;/script&gt;&amp;&#34;&#39;");
    }

    #[test]
    fn numbers() {
        assert_eq!(thousands(1_234_567), "1\u{a0}234\u{a0}567");
        assert_eq!(thousands(1234), "1234");
        assert_eq!(
            (counted(1, "samples on CPU"), counted(2, "bytes"), counted(1, "ms of CPU time")),
            ("1 sample on CPU".into(), "2 bytes".into(), "1 ms of CPU time".into())
        );
    }
}
