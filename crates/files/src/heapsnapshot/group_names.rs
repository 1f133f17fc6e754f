//! Names of groups of blocks: `5 012 × [u8]`.

use std::fmt::Write;

/// The name of a group of this many blocks of a type.
pub(super) fn group_name(members: u32, name: &str) -> String {
    let digits = members.to_string();
    let mut text = String::with_capacity(digits.len() + name.len() + 8);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    let _ = write!(text, " × {name}");
    text
}

/// The number of blocks and their type, if a node is such a group.
///
/// ```
/// use stackglass_files::heapsnapshot::grouped_blocks;
///
/// assert_eq!(grouped_blocks("5 012 × [u8]"), Some((5012, "[u8]")));
/// assert_eq!(grouped_blocks("[u8]"), None);
/// ```
pub fn grouped_blocks(name: &str) -> Option<(u64, &str)> {
    let (count, name) = name.split_once(" × ")?;
    let digits: String = count.chars().filter(|char| *char != ' ').collect();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| plain)?, name))
}
