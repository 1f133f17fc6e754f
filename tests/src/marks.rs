//! The lines of the program `tests/awaits` that its comments `// @name` mark.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The sources of the program.
fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("awaits/src");
    let files = std::fs::read_dir(folder).expect("the sources of the host are there");
    files.map(|file| file.expect("a file").path()).collect()
}

/// The numbers of the lines that end in `// @name`, by name.
pub fn marked_lines() -> HashMap<String, usize> {
    let mut lines = HashMap::new();
    for path in sources() {
        let text = std::fs::read_to_string(path).expect("a source is text");
        for (number, line) in text.lines().enumerate() {
            if let Some((_, name)) = line.rsplit_once("// @") {
                lines.insert(name.trim().to_owned(), number + 1);
            }
        }
    }
    lines
}

/// Replaces the names of lines by their numbers.
pub fn with_lines(stack: &str, lines: &HashMap<String, usize>) -> String {
    let (mut text, mut word) = (String::new(), String::new());
    for char in stack.chars().chain(['\0']) {
        if char.is_alphanumeric() || matches!(char, '_' | '!') {
            word.push(char);
            continue;
        }
        text += &lines.get(&word).map_or(word.clone(), usize::to_string);
        word.clear();
        text.extend((char != '\0').then_some(char));
    }
    text
}
