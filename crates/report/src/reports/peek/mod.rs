//! The text of a peek: what a running program does now, and where the next second of its time goes.
//!
//! It begins with a notice and the stacks of all threads. When the profile is complete, a second notice and the report
//! by thread and task follow. Order, rules of `=` and wording are those of the reference.
//!
//! ```
//! use stackglass_report::peek::Peek;
//! use stackglass_profile::Recording;
//! use std::{collections::HashMap, time::Duration};
//!
//! let (recording, mut text) = (Recording::default(), Vec::new());
//! let peek = Peek::new(Duration::from_secs(1)).cols(100);
//! peek.begin(&mut text)?;
//! peek.threads(&recording, &HashMap::default(), &mut text)?;
//! peek.end(&mut text)?;
//! peek.report(&recording, &mut text)?;
//! assert!(String::from_utf8(text)?.contains("followed by a 1.0 second profile"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod digest;
mod json;
mod threads;
mod waits;

pub use json::write_json;

use crate::options::GroupBy;
use crate::reports::print::Report;
use crate::text::columns;
use crate::{Links, ReportError, Style};
use foldhash::HashMap;
use stackglass_profile::thread_waits::ThreadWaits;
use stackglass_profile::{Activity, Recording};
use std::io::{self, Write};
use std::time::Duration;

/// Width of the rules around the first notice.
const FIRST_RULE: usize = 86;
/// Width of the rules around the second notice.
const SECOND_RULE: usize = 62;

/// Notices are never narrower.
const NARROWEST: usize = 20;

/// Branches below this many standard errors of their parent's count are hidden.
const NOISE: f64 = 1.0;

/// Notice before a peek saves a heap snapshot, as in Julia.
pub const SAVING_HEAP_SNAPSHOT: &str = "Saving heap snapshot...";

/// Notice that a heap snapshot was saved, as in Julia.
///
/// ```
/// assert_eq!(stackglass_report::peek::heap_snapshot_saved("7_1.heapsnapshot"), "Heap snapshot saved to `7_1.heapsnapshot`");
/// ```
pub fn heap_snapshot_saved(name: &str) -> String {
    format!("Heap snapshot saved to `{name}`")
}

/// Whether the value of `STACKGLASS_PEEK_HEAP_SNAPSHOT` means yes: 1, t, true, y or yes in upper or lower case.
///
/// ```
/// use stackglass_report::peek::is_truthy;
/// assert!(is_truthy(Some("Yes".as_ref())) && !is_truthy(Some("on".as_ref())) && !is_truthy(None));
/// ```
pub fn is_truthy(value: Option<&std::ffi::OsStr>) -> bool {
    let text = value.and_then(|value| value.to_str()).unwrap_or_default().to_ascii_lowercase();
    matches!(&*text, "1" | "t" | "true" | "y" | "yes")
}

/// The text of a peek.
#[derive(Clone, Debug)]
pub struct Peek {
    duration: Duration,
    cols: usize,
    style: Style,
    links: Option<Links>,
}

impl Peek {
    /// A peek whose profile takes `duration`, 80 columns wide.
    pub fn new(duration: Duration) -> Peek {
        Peek { duration, cols: 80, style: Style::Plain, links: None }
    }

    /// Width in terminal columns.
    pub fn cols(mut self, columns: usize) -> Peek {
        self.cols = columns.min(crate::MOST_COLUMNS);
        self
    }

    crate::layout_setter!(style);
    crate::layout_setter!(links);

    /// Writes the first notice.
    ///
    /// # Errors
    /// When writing fails.
    pub fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = self.duration.as_secs_f64();
        let notice = format!(
            "Information request received. A stacktrace will print followed by a {seconds:.1} second profile."
        );
        let rule = "=".repeat(FIRST_RULE.min(self.cols));
        let notice = columns::wrap(&notice, self.cols.max(NARROWEST)).join("\n");
        writeln!(out, "\n{rule}\n{notice}\n{rule}")
    }

    /// Writes the stack of each thread's last sample. Threads with the same stack are shown together.
    ///
    /// `activity`, by kernel thread id, adds details that samples do not have, and threads without a sample. As in
    /// Julia, `running R of N` counts threads that wait for a CPU as running; their headings show which ones wait.
    ///
    /// # Errors
    /// When writing fails.
    pub fn threads(
        &self,
        recording: &Recording,
        activity: &HashMap<u32, Activity>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        threads::write(self, recording, activity, out)
    }

    /// Writes which threads wait for which others, after an empty line. Nothing, if none does. Threads have the numbers of
    /// `recording`.
    ///
    /// # Errors
    /// When writing fails.
    pub fn waits(
        &self,
        waits: &ThreadWaits,
        recording: Option<&Recording>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        waits::write(self, waits, recording, out)
    }

    /// Writes the second notice.
    ///
    /// # Errors
    /// When writing fails.
    pub fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        let rule = "=".repeat(SECOND_RULE.min(self.cols));
        let notice = "Profile collected. A report will print now.";
        let notice = columns::wrap(notice, self.cols.max(NARROWEST)).join("\n");
        writeln!(out, "\n{rule}\n{notice}\n{rule}\n")
    }

    /// Writes the profile by thread and task, or by thread if there are no tasks, and a digest of a few lines.
    ///
    /// Branches that are not clearly above the noise are hidden, and in programs made from Rust foreign frames as well.
    /// Functions have no generic arguments, which would fill the lines.
    /// Tasks with the same name and place of creation are shown together. So are threads with the same name that slept
    /// in one place; their name says so.
    ///
    /// Utilization is the share of snapshots in which a thread was not asleep. As in Julia, it includes time in which a
    /// thread waited for a CPU: on a machine with too few CPUs, each of many threads may show 100%.
    ///
    /// # Errors
    /// When writing fails.
    pub fn report(&self, recording: &Recording, out: &mut dyn Write) -> Result<(), ReportError> {
        let report = Report::new()
            .group_by(if recording.samples.iter().any(|sample| sample.task != 0) {
                GroupBy::ThreadTask
            } else {
                GroupBy::Thread
            })
            .c(!recording.has_rust())
            .noisefloor(NOISE)
            .without_generics()
            .cols(self.cols)
            .style(self.style)
            .links(self.links.clone());
        for warning in report.write(&alike::merged(recording), out)?.warnings {
            writeln!(out, "{warning}")?;
        }
        digest::write(self, recording, out)?;
        Ok(())
    }
}
