//! What all parts of a report need.

use super::Report;
use super::labels::Labels;
use crate::Source;
use crate::trees::aggregated_samples::AggregatedSamples;

/// A report, the samples it is made from, and the names it shows.
pub(super) struct Context<'a> {
    pub report: &'a Report,
    pub source: Source<'a>,
    pub samples: &'a AggregatedSamples<'a>,
    pub labels: Labels<'a>,
}
