//! Removes what differs between runs of the same program: process ids, addresses, times.

/// A shell reports a process that a signal ended, with its id.
pub fn shell(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let told = words.next()?.ends_with(':') && words.next() == Some("line") && words.next().is_some();
    let number = words.next().filter(|word| told && word.chars().all(|c| c.is_ascii_digit()));
    Some(match number {
        Some(number) => line.replacen(&format!(" {number} "), " N ", 1),
        None => line.to_owned(),
    })
}

/// Replaces process ids and addresses: numbers of three or more digits, also hexadecimal.
pub fn without_numbers(line: &str) -> Option<String> {
    let mut text = String::new();
    let mut word = String::new();
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let digits = word.strip_prefix("0x").unwrap_or(&word);
        let number = match digits.len() == word.len() {
            true => digits.len() > 2 && digits.chars().all(|c| c.is_ascii_digit()),
            false => digits.chars().all(|c| c.is_ascii_hexdigit()),
        };
        text.push_str(if number { "N" } else { &word });
        word.clear();
        if c != '\n' {
            text.push(c);
        }
    }
    Some(text)
}

/// The error in a sanitizer's report, without the memory table, which is full of addresses.
pub fn sanitizer(line: &str) -> Option<String> {
    let memory = line.contains("=>") || line.trim_start().starts_with("0x");
    if memory { None } else { without_numbers(line) }
}

/// The results of CPython's test runner: run, failed and skipped tests.
pub fn regrtest(line: &str) -> Option<String> {
    let told = ["Ran ", "OK", "FAILED (", "FAIL: ", "ERROR: ", "Result: ", "Total tests: ", "test test_"];
    if !told.iter().any(|start| line.starts_with(start)) {
        return None;
    }
    // `Ran 46 tests in 3.278s`
    Some(line.split(" in ").next().unwrap_or(line).to_owned())
}

/// The errors in valgrind's report, and its numbers of blocks and bytes.
pub fn valgrind(line: &str) -> Option<String> {
    let counts = ["Collected", "refs:", "Command:", "total heap usage"];
    if counts.iter().any(|word| line.contains(word)) { None } else { without_numbers(line) }
}
