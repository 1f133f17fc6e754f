//! May everything we depend on be shipped under MIT OR Apache-2.0?

use super::Tally;
use crate::run::{cargo, output};
use anyhow::{Context, Result};
use serde_json::Value;

/// Licences that ask for no more than to be named.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// One check over all packages of the lock file that are used on Linux.
pub fn check() -> Result<Tally> {
    let metadata = ["metadata", "--format-version", "1", "--all-features", "--filter-platform"];
    let metadata = output(cargo(&metadata).arg("x86_64-unknown-linux-gnu"))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut refused = 0;
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let licence = package["license"].as_str().unwrap_or("");
        if !allowed(licence) {
            refused += 1;
            eprintln!("{} {}: licence {licence:?} is not on the list", package["name"], package["version"]);
        }
    }
    Ok(Tally::one(refused == 0))
}

/// True when an expression can be met with allowed licences only.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&words, &mut at);
    met && at == words.len()
}

/// `all OR all …`
fn any(words: &[&str], at: &mut usize) -> bool {
    let mut met = all(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at);
    }
    met
}

/// `one AND one …`
fn all(words: &[&str], at: &mut usize) -> bool {
    let mut met = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at);
    }
    met
}

/// A licence, with its exception, or an expression in parentheses.
fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = any(words, at);
        *at += 1;
        return met;
    }
    match (words.get(*at), words.get(*at + 1)) {
        (Some(&"WITH"), Some(exception)) => {
            *at += 2;
            ALLOWED.contains(&format!("{word} WITH {exception}").as_str())
        }
        _ => ALLOWED.contains(word),
    }
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn an_expression_is_met_when_one_way_through_it_is() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("CDDL-1.0", false),
            ("", false),
        ] {
            assert_eq!(allowed(expression), expected, "{expression}");
        }
    }
}
