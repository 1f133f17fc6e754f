//! `stackglass help report` and `help environment`: texts that belong to no single verb.

use crate::failure::Outcome;
use std::io::Write;

/// Prints the text of a topic.
pub(crate) fn print(text: &str) -> Outcome {
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use crate::{environment_help, report_help};

    #[test]
    fn topics_fit_a_terminal() {
        for text in [report_help::TEXT, environment_help::TEXT] {
            assert!(text.lines().all(|line| line.chars().count() <= 80));
        }
    }
}
