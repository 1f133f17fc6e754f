//! One line of JSON, written without a library to keep the workloads free of dependencies.

use std::fmt::{self, Display, Write};

/// Collects `"key": value` pairs and prints them as one object.
pub struct Report(String);

impl Report {
    /// A report with the workload's name.
    pub fn new(name: &str) -> Report {
        Report(format!("\"workload\": \"{name}\""))
    }

    /// Adds a number.
    pub fn number(&mut self, key: &str, value: impl Display) {
        self.raw(key, value);
    }

    /// Adds a list of entries in JSON.
    pub fn list(&mut self, key: &str, entries: &[String]) {
        self.raw(key, format_args!("[{}]", entries.join(", ")));
    }

    fn raw(&mut self, key: &str, value: impl Display) {
        write!(self.0, ", \"{key}\": {value}").expect("a string takes all");
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}
