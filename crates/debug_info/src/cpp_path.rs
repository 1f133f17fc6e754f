//! From a demangled C++ name to its path: `std::vector<int, A>::push_back` to `std::vector::push_back`. Template arguments,
//! parameters and clone suffixes are left out.

/// Operators that contain brackets, longest first.
const OPERATORS: [&str; 13] =
    ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"];

/// The path of a demangled name.
pub fn path(name: &str) -> String {
    let mut path = String::with_capacity(name.len().min(256));
    let mut depth = 0usize;
    let mut rest = name;
    while let Some(now) = rest.chars().next() {
        if depth == 0
            && let Some(after) = special(rest, &mut path)
        {
            rest = after;
            continue;
        }
        match now {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => path.push(now),
            _ => {}
        }
        rest = &rest[now.len_utf8()..];
    }
    path.truncate(path.trim_end().len());
    path
}

/// Reads an operator or a lambda, whose brackets do not match, from the start of `rest`; returns the rest.
fn special<'name>(rest: &'name str, path: &mut String) -> Option<&'name str> {
    if let Some(after) = word(rest, path, "operator") {
        path.push_str("operator");
        let sign = OPERATORS.iter().find(|sign| after.starts_with(**sign)).copied().unwrap_or("");
        path.push_str(sign);
        if sign.is_empty() && after.starts_with(' ') {
            // In a conversion, the name of a type follows.
            path.push(' ');
            return Some(after.trim_start());
        }
        return Some(&after[sign.len()..]);
    }
    let anonymous = "(anonymous namespace)";
    if let Some(after) = rest.strip_prefix(anonymous) {
        path.push_str(anonymous);
        return Some(after);
    }
    if let Some(after) = rest.strip_prefix("{lambda") {
        path.push_str("{lambda}");
        return Some(after_brace(after));
    }
    if [" const", " volatile", " [clone"].iter().any(|mark| rest.starts_with(mark)) {
        return Some(rest.find("::").map_or("", |at| &rest[at..]));
    }
    if rest.starts_with("[abi:") {
        return Some(rest.split_once(']').map_or("", |(_, after)| after));
    }
    None
}

/// The text behind `wanted` if `rest` starts with that word.
fn word<'name>(rest: &'name str, before: &str, wanted: &str) -> Option<&'name str> {
    let after = rest.strip_prefix(wanted)?;
    let part = |char: char| char.is_alphanumeric() || char == '_';
    (!before.ends_with(part) && !after.starts_with(part)).then_some(after)
}

fn after_brace(rest: &str) -> &str {
    let mut depth = 1usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return &rest[at + 1..];
                }
            }
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_become_paths() {
        for (name, expected) in [
            ("main", "main"),
            ("std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"),
            ("std::vector<int>::push_back(int&&)", "std::vector::push_back"),
            ("foo(int)::bar() const", "foo::bar"),
            ("std::operator<< <std::char_traits<char> >", "std::operator<<"),
            ("a::B::operator()(int) const", "a::B::operator()"),
            ("a::B<int>::operator<", "a::B::operator<"),
            ("a::B<int>::operator->", "a::B::operator->"),
            ("a::B::operator bool() const", "a::B::operator bool"),
            ("(anonymous namespace)::helper(int)", "(anonymous namespace)::helper"),
            ("run(int)::{lambda(int)#1}::operator()(int) const", "run::{lambda}::operator()"),
            ("name[abi:cxx11](int)", "name"),
            ("work(int) [clone .cold]", "work"),
            ("cooperator<int>::x", "cooperator::x"),
            ("", ""),
            ("<<<", ""),
        ] {
            assert_eq!(path(name), expected, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_path(text in "[a-z<>:&(){}\\[\\] #+.é-]{0,60}|.{0,20}") {
            proptest::prop_assert!(path(&text).len() <= 4 * text.len() + 32);
        }
    }
}
