//! The text of a peek: what a running program does now, then where a second of it went.
//!
//! A notice and the stacks of all threads at once, a second notice when the profile is there, then
//! the report by thread and task. Order, rules of `=` and words follow the reference's peek; how the
//! samples came about is nobody's concern here.
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
mod threads;

use crate::options::GroupBy;
use crate::reports::complete::Report;
use crate::text::columns;
use crate::{Links, ReportError, Style};
use foldhash::HashMap;
use stackglass_profile::{Activity, Recording};
use std::io::{self, Write};
use std::time::Duration;

/// Width of the rule around the first notice, and around the second.
const RULES: (usize, usize) = (86, 62);

/// Notices are not wrapped to less.
const NARROWEST: usize = 20;

/// Branches below this many standard errors of their parent's count are hidden.
const NOISE: f64 = 1.0;

/// Said where a heap snapshot was asked for.
pub const NO_HEAP_SNAPSHOT: &str =
    "stackglass: STACKGLASS_PEEK_HEAP_SNAPSHOT is set, but this version has no heap snapshots yet";

/// Whether the value of `STACKGLASS_PEEK_HEAP_SNAPSHOT` says yes: 1, t, true, y or yes in any case.
/// Anything else, also what cannot be read, says no.
///
/// ```
/// use stackglass_report::peek::is_truthy;
/// assert!(is_truthy(Some("Yes".as_ref())) && !is_truthy(Some("on".as_ref())) && !is_truthy(None));
/// ```
pub fn is_truthy(value: Option<&std::ffi::OsStr>) -> bool {
    let text = value.and_then(|value| value.to_str()).unwrap_or_default().to_ascii_lowercase();
    matches!(&*text, "1" | "t" | "true" | "y" | "yes")
}

/// How a peek is shown.
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
        self.cols = columns;
        self
    }

    /// Colours, or none.
    pub fn style(mut self, style: Style) -> Peek {
        self.style = style;
        self
    }

    /// Makes locations links; only where colours are allowed.
    pub fn links(mut self, links: Option<Links>) -> Peek {
        self.links = links;
        self
    }

    /// The first notice.
    ///
    /// # Errors
    /// When writing fails.
    pub fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = self.duration.as_secs_f64();
        let notice = format!(
            "Information request received. A stacktrace will print followed by a {seconds:.1} second profile."
        );
        let rule = "=".repeat(RULES.0.min(self.cols));
        let notice = columns::wrap(&notice, self.cols.max(NARROWEST)).join("\n");
        writeln!(out, "\n{rule}\n{notice}\n{rule}")
    }

    /// The stacks of all threads: of each the last sample's. Threads with the same stack stand together. `activity`,
    /// by the kernel's ids, tells more than a sample does, and of threads that have none yet. `running R of N` counts
    /// threads that wait for a processor as running, as Julia does; their headings say which of the two it is.
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

    /// The second notice.
    ///
    /// # Errors
    /// When writing fails.
    pub fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        let rule = "=".repeat(RULES.1.min(self.cols));
        let notice = "Profile collected. A report will print now.";
        let notice = columns::wrap(notice, self.cols.max(NARROWEST)).join("\n");
        writeln!(out, "\n{rule}\n{notice}\n{rule}\n")
    }

    /// The profile by thread and task. Foreign frames are hidden where the program is made from Rust, and branches that
    /// are not clearly above the noise. Tasks of one name and place stand together, and so do threads of one name that
    /// slept in one place, which is said with the name. A program without tasks is grouped by thread alone. At the end stands in
    /// a few lines where the time went.
    ///
    /// Utilization is the share of snapshots in which a thread was not asleep. As in Julia, that is time on a processor
    /// and time ready to run, waiting for one: on a machine with too few processors each of many threads shows 100%.
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
