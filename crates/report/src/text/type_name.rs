//! Names of types, shortened to the available columns. The outermost type and the shape of its arguments say the most,
//! so the innermost arguments are left out first.

use crate::text::columns::{cut_right, width};

/// A type in at most `room` columns. Arguments become `…`, the deepest and last first; then the end is cut.
pub fn shorten_type(name: &str, room: usize) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    let deepest = depths(name).map(|(_, depth)| depth).max().unwrap_or(0);
    let mut shortest = name.to_owned();
    for depth in (1..=deepest).rev() {
        shortest = without_arguments(name, depth, 0);
        if width(&shortest) <= room {
            return without_arguments(name, depth, room - width(&shortest));
        }
    }
    cut_right(&shortest, room).into_owned()
}

/// The name with `…` in the place of everything in `depth` or more brackets. The first arguments are kept as far as the
/// columns in `spare` go.
fn without_arguments(name: &str, depth: usize, mut spare: usize) -> String {
    let mut text = String::new();
    let mut rest: Vec<(char, usize)> = depths(name).collect();
    rest.reverse();
    while let Some((char, now)) = rest.pop() {
        if now < depth {
            text.push(char);
            continue;
        }
        let mut inside = String::from(char);
        while let Some((char, _)) = rest.pop_if(|(_, now)| *now >= depth) {
            inside.push(char);
        }
        let kept = first_arguments(&inside, spare);
        spare -= width(kept);
        text.push_str(kept);
        text.push('…');
    }
    text
}

/// The first parts of a list, with the separators behind them, that fit.
fn first_arguments(list: &str, room: usize) -> &str {
    let ends = depths(list).scan(0, |at, (char, depth)| {
        *at += char.len_utf8();
        Some((*at, char == ' ' && depth == 0))
    });
    let ends = ends.filter(|(at, ends)| *ends && list[..*at].ends_with(", ")).map(|(at, _)| at);
    ends.take_while(|at| width(&list[..*at]) <= room).last().map_or("", |at| &list[..at])
}

/// Each character with the number of brackets around it. Brackets are outside of themselves.
fn depths(name: &str) -> impl Iterator<Item = (char, usize)> {
    let (mut depth, mut before) = (0usize, ' ');
    name.chars().map(move |char| {
        let arrow = char == '>' && before == '-';
        before = char;
        match char {
            '<' | '(' | '[' => {
                depth += 1;
                (char, depth - 1)
            }
            '>' | ')' | ']' if !arrow => {
                depth = depth.saturating_sub(1);
                (char, depth)
            }
            _ => (char, depth),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_keep_their_outside() {
        for (name, room, expected) in [
            ("[u8]", 4, "[u8]"),
            ("HashMap<u64, Vec<Option<Event>>> table", 38, "HashMap<u64, Vec<Option<Event>>> table"),
            ("HashMap<u64, Vec<Option<Event>>> table", 34, "HashMap<u64, Vec<Option<…>>> table"),
            ("HashMap<u64, Vec<Option<Event>>> table", 30, "HashMap<u64, Vec<…>> table"),
            ("HashMap<u64, Vec<Option<Event>>> table", 22, "HashMap<u64, …> table"),
            ("HashMap<u64, Vec<Option<Event>>> table", 16, "HashMap<…> table"),
            ("HashMap<u64, Vec<Option<Event>>> table", 8, "HashMap…"),
            ("[(String, Vec<u8>)]", 18, "[(String, Vec<…>)]"),
            ("[(String, Vec<u8>)]", 16, "[(String, …)]"),
            ("[(String, Vec<u8>)]", 6, "[(…)]"),
            ("Box<fn(u8) -> Option<u8>>", 24, "Box<fn(…) -> Option<…>>"),
            ("VeryLongNameOfAType", 8, "VeryLon…"),
            ("Arc<Mutex<State>>", 3, "Ar…"),
            ("()", 1, "…"),
            ("", 0, ""),
        ] {
            assert_eq!(shorten_type(name, room), expected, "{name} {room}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_result_fits(name in "[a-zé<>()\\[\\], -]{0,40}|.{0,20}", room in 1usize..40) {
            proptest::prop_assert!(width(&shorten_type(&name, room)) <= room);
        }
    }
}
