//! One spelling of C++ types. Compilers and demanglers differ in spaces, in the place of `const`, and in how they write
//! numbers: `A<char const*, 2ul>`, `A<const char *, 2>`.

/// The name without optional spaces, with `const` behind the type, and numbers without their types.
pub(super) fn uniform(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    let mut depth = 0usize;
    // Depths of the types that `const` follows.
    let mut waiting: Vec<usize> = Vec::new();
    while let Some(first) = rest.chars().next() {
        if is_word(first) {
            let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            if word == "const" {
                let begins = text.is_empty() || text.ends_with(['<', ',', '(']);
                if begins && waiting.last() != Some(&depth) {
                    waiting.push(depth);
                } else {
                    text.push_str(" const");
                }
                continue;
            }
            if text.ends_with(is_word) {
                text.push(' ');
            }
            if INTEGERS.contains(&word) {
                let (integer, behind) = integer(word, rest);
                text.push_str(&integer);
                rest = behind;
            } else {
                text.push_str(number(word));
            }
            continue;
        }
        rest = &rest[first.len_utf8()..];
        if first == ' ' {
            continue;
        }
        if first == '('
            && text.ends_with(['<', ','])
            && let Some(behind) = cast(rest)
        {
            rest = behind;
            continue;
        }
        if matches!(first, '*' | '&' | ',' | '>' | ')') && waiting.pop_if(|at| *at >= depth).is_some() {
            text.push_str(" const");
        }
        match first {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        text.push(first);
    }
    if !waiting.is_empty() {
        text.push_str(" const");
    }
    text
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Words of integer types.
const INTEGERS: &[&str] = &["unsigned", "signed", "long", "short", "int", "char"];

/// An integer type that begins with `first`, in the order of demanglers, and what follows: `long unsigned int` is
/// `unsigned long`.
fn integer<'text>(first: &'text str, mut rest: &'text str) -> (String, &'text str) {
    let mut words = vec![first];
    loop {
        let next = rest.trim_start_matches(' ');
        let end = next.find(|char| !is_word(char)).unwrap_or(next.len());
        if words.len() >= 4 || !INTEGERS.contains(&&next[..end]) {
            break;
        }
        words.push(&next[..end]);
        rest = &next[end..];
    }
    let count = |word: &str| words.iter().filter(|one| **one == word).count();
    let mut parts = Vec::new();
    if count("unsigned") > 0 {
        parts.push("unsigned");
    } else if count("signed") > 0 && count("char") > 0 {
        parts.push("signed");
    }
    parts.extend((0..count("long")).map(|_| "long"));
    parts.extend((0..count("short").min(1)).map(|_| "short"));
    parts.extend((0..count("char").min(1)).map(|_| "char"));
    if count("long") + count("short") + count("char") == 0 {
        parts.push("int");
    }
    (parts.join(" "), rest)
}

/// A number without the letters for its type.
fn number(word: &str) -> &str {
    if word.starts_with(|first: char| first.is_ascii_digit()) {
        word.trim_end_matches(['u', 'l', 'U', 'L'])
    } else {
        word
    }
}

/// What follows the type in `(unsigned int)4`.
fn cast(text: &str) -> Option<&str> {
    let (a_type, behind) = text.split_once(')')?;
    let plain = a_type.chars().all(|char| is_word(char) || matches!(char, ' ' | ':'));
    (plain && behind.starts_with(|first: char| first.is_ascii_digit() || first == '-')).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::uniform;

    #[test]
    fn spellings_of_one_type_are_equal() {
        for (one, other) in [
            ("std::vector<int, std::allocator<int> >", "std::vector<int,std::allocator<int>>"),
            ("std::pair<const unsigned long, app::Item>", "std::pair<unsigned long const, app::Item>"),
            ("A<const char*, 2ul>", "A<char const *, (unsigned long)2>"),
            ("std::set<long unsigned int, short>", "std::set<unsigned long, short int>"),
            ("A<signed char, signed, long double>", "A<signed char,int,long double>"),
            ("A<const std::pair<const B, C>&>", "A<std::pair<B const, C> const&>"),
            (
                "_Sp_counted_ptr_inplace<A, B, __gnu_cxx::_S_atomic>",
                "_Sp_counted_ptr_inplace<A,B,__gnu_cxx::_S_atomic>",
            ),
        ] {
            assert_eq!(uniform(one), uniform(other), "{one}");
        }
        assert_eq!(uniform("const char*"), "char const*");
        assert_ne!(uniform("A<const char*>"), uniform("A<char* const>"));
        assert_ne!(uniform("unsigned int"), uniform("unsignedint"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_spelling(text in "[a-z0-9<>:&(){}, *-]{0,60}|(const |<|,|\\(){0,10}.{0,20}") {
            let once = uniform(&text);
            proptest::prop_assert!(once.len() <= 2 * text.len() + 6);
        }
    }
}
