//! Labels of boxes, shortened to the available width.

use crate::captions::parts;
use crate::{Graph, Node};
use stackglass_profile::Frame;

/// Shorter labels are omitted.
const LEAST: usize = 3;

/// Marks omitted characters. The font has no ellipsis.
const CUT: &str = "..";

/// The label of a box: its function, shortened if necessary, and its share if it fits.
pub(super) fn label(graph: &Graph, node: &Node, room: usize) -> String {
    let name = name(graph.frame(node), node.depth == 0);
    let short = short(&name, room);
    let share = share(node.span.len(), graph.root().span.len());
    if node.depth > 0 && short.chars().count() + 1 + share.len() <= room {
        format!("{short} {share}")
    } else {
        short
    }
}

/// `12 %`.
fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn name(frame: &Frame, is_root: bool) -> String {
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (&*frame.func, &*frame.file, &*frame.module) {
        ("", "", "") if is_root => "all".to_owned(),
        ("", "", "") => "unknown".to_owned(),
        ("", "", module) => format!("[{}]", file(module).trim_matches(['[', ']'])),
        ("", path, _) => format!("{}:{}", file(path), frame.line),
        (func, ..) => func.to_owned(),
    }
}

/// A function's path, shortened to the last parts that fit, or to the beginning of the last one. May be empty.
fn short(name: &str, room: usize) -> String {
    let fits = |text: &str, room: usize| text.chars().nth(room).is_none();
    if fits(name, room) {
        return name.to_owned();
    }
    let Some(left) = room.checked_sub(CUT.len()) else { return String::new() };
    let mut rest = name;
    for tail in parts(name) {
        rest = tail;
        if fits(rest, left) {
            return format!("{CUT}{rest}");
        }
    }
    if room < LEAST { String::new() } else { rest.chars().take(left).chain(CUT.chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_says_the_most() {
        assert_eq!(short("serde_json::de::from_str", 24), "serde_json::de::from_str");
        assert_eq!(short("serde_json::de::from_str", 23), "..de::from_str");
        assert_eq!(short("serde_json::de::from_str", 10), "..from_str");
        assert_eq!(short("serde_json::de::from_str", 9), "from_st..");
        assert_eq!(short("fürwahr", 3), "f..");
        assert_eq!(short("main", 2), "");
        assert_eq!((short("main", 0), short("a", 1)), (String::new(), "a".to_owned()));
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!(share(1, 3), "33 %");
        assert_eq!(share(1, 30), "3.3 %");
        assert_eq!(share(994, 10_000), "9.9 %");
        assert_eq!(share(999, 10_000), "10 %");
        assert_eq!(share(0, 0), "0.0 %");
    }
}
