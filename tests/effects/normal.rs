//! What differs from run to run of the same program: numbers of processes, addresses, times.

/// Of a shell: what ended by a signal is told with the number of its process.
pub fn shell(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let told = words.next()?.ends_with(':') && words.next() == Some("line") && words.next().is_some();
    let number = words.next().filter(|word| told && word.chars().all(|c| c.is_ascii_digit()));
    Some(match number {
        Some(number) => line.replacen(&format!(" {number} "), " N ", 1),
        None => line.to_owned(),
    })
}

/// Replaces each process number and address: numbers of three digits and more, hexadecimal ones as well.
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

/// Of a sanitizer's report: what was found, without the table of memory around it, which has addresses everywhere.
pub fn sanitizer(line: &str) -> Option<String> {
    let memory = line.contains("=>") || line.trim_start().starts_with("0x");
    if memory { None } else { without_numbers(line) }
}

/// Of CPython's test runner: what ran, what failed, what was left out.
pub fn regrtest(line: &str) -> Option<String> {
    let told = ["Ran ", "OK", "FAILED (", "FAIL: ", "ERROR: ", "Result: ", "Total tests: ", "test test_"];
    if !told.iter().any(|start| line.starts_with(start)) {
        return None;
    }
    // `Ran 46 tests in 3.278s`
    Some(line.split(" in ").next().unwrap_or(line).to_owned())
}

/// Of valgrind's report: what it found. How many blocks and bytes it says too, without thousands.
pub fn valgrind(line: &str) -> Option<String> {
    let counts = ["Collected", "refs:", "Command:", "total heap usage"];
    if counts.iter().any(|word| line.contains(word)) { None } else { without_numbers(line) }
}
