//! Where we deliberately differ from the recorded behaviour of Julia's reports, one switch each.
//!
//! Recorded reports are reproduced byte for byte with all of them on; users get none.

use stackglass_profile::Frame;

/// Behaviour of the reference that we correct unless asked to repeat it.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quirks {
    /// The earliest sample counts, but earns no overhead.
    pub earliest_earns_nothing: bool,
    /// Rows of flat reports lack the space between File and Line that their header has.
    pub flat_without_gap: bool,
    /// Grouped reports warn of empty groups even when there are none.
    pub always_warn_in_groups: bool,
    /// An empty file name shows as `.`, its normal form.
    pub empty_file_is_dot: bool,
    /// Flat reports take the width of the wrong column from the room for function names.
    pub flat_cuts_functions: bool,
    /// The room for file names in flat reports is not made smaller by a prefix: long ones push what follows.
    pub flat_prefix_pushes: bool,
    /// Equal frames of different instances show the name of one of them.
    pub any_spec: bool,
    /// A report without lines is always put down to too few samples.
    pub one_reason: bool,
    /// The line of totals is not wrapped.
    pub wide_totals: bool,
    /// An address that is also the sample's thread number leads back to the root where recursion is folded: the
    /// search runs on into the sample's metadata.
    pub folds_into_metadata: bool,
    /// Frames without names are one, whatever module they are in.
    pub nameless_alike: bool,
}

impl Quirks {
    /// All of them, as in the reference.
    pub const ALL: Quirks = Quirks {
        earliest_earns_nothing: true,
        flat_without_gap: true,
        always_warn_in_groups: true,
        empty_file_is_dot: true,
        flat_cuts_functions: true,
        flat_prefix_pushes: true,
        any_spec: true,
        one_reason: true,
        wide_totals: true,
        folds_into_metadata: true,
        nameless_alike: true,
    };

    /// The module of a frame of which nothing else is known; empty for all others, and where frames
    /// without names are to be one.
    pub(crate) fn module_of_nameless(self, frame: &Frame) -> &str {
        if self.nameless_alike { "" } else { frame.nameless_module() }
    }
}
