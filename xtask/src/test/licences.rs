//! Every dependency has a licence that `deny.toml` allows.

use super::Tally;
use crate::run::{cargo, output, root};
use anyhow::{Context, Result};
use serde_json::Value;
use std::iter::Peekable;

/// One check over all packages of the lock file that are used on Linux.
pub fn check() -> Result<Tally> {
    let metadata = ["metadata", "--format-version", "1", "--all-features", "--filter-platform"];
    let metadata = output(cargo(&metadata).arg("x86_64-unknown-linux-gnu"))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let allowed = allowed()?;
    let mut refused = 0;
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let licence = package["license"].as_str().unwrap_or("");
        if !is_allowed(licence, &allowed) {
            refused += 1;
            eprintln!(
                "{} {}: licence {licence:?} is not allowed by deny.toml",
                package["name"], package["version"]
            );
        }
    }
    Ok(Tally::one(refused == 0))
}

/// The licences in `deny.toml`.
fn allowed() -> Result<Vec<String>> {
    let deny = std::fs::read_to_string(root().join("deny.toml")).context("cannot read deny.toml")?;
    let deny: toml::Table = toml::from_str(&deny).context("cannot parse deny.toml")?;
    let list = deny.get("licenses").and_then(|licenses| licenses.get("allow")?.as_array());
    let licences = list.context("deny.toml has no list of licences")?.iter().map(|one| one.as_str());
    licences.map(|one| Ok(one.context("a licence in deny.toml is no text")?.to_owned())).collect()
}

/// Whether an SPDX expression can be satisfied with allowed licences only.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().peekable(), allowed };
    words.any() && words.words.next().is_none()
}

/// The words of an SPDX expression that are not read yet.
struct Words<'a, I: Iterator<Item = &'a str>> {
    words: Peekable<I>,
    allowed: &'a [String],
}

impl<'a, I: Iterator<Item = &'a str>> Words<'a, I> {
    /// `all OR all …`
    fn any(&mut self) -> bool {
        let mut satisfied = self.all();
        while self.words.next_if_eq(&"OR").is_some() {
            satisfied |= self.all();
        }
        satisfied
    }

    /// `one AND one …`
    fn all(&mut self) -> bool {
        let mut satisfied = self.one();
        while self.words.next_if_eq(&"AND").is_some() {
            satisfied &= self.one();
        }
        satisfied
    }

    /// A licence, with its exception, or an expression in parentheses.
    fn one(&mut self) -> bool {
        match self.words.next() {
            Some("(") => self.any() & (self.words.next() == Some(")")),
            Some(licence) if self.words.next_if_eq(&"WITH").is_some() => {
                let exception = self.words.next().unwrap_or_default();
                self.allowed.contains(&format!("{licence} WITH {exception}"))
            }
            Some(licence) => self.allowed.iter().any(|allowed| allowed == licence),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn an_expression_is_allowed_when_one_alternative_is() {
        let list = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(String::from);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("(MIT OR GPL-3.0", false),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("CDDL-1.0", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &list), expected, "{expression}");
        }
    }
}
