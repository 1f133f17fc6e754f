//! Deliberate differences from Julia's reports, with one switch each.
//!
//! With all switches on, recorded reports are reproduced byte for byte. Users get none.

use stackglass_profile::Frame;

/// Behaviour of the reference to repeat instead of correct.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quirks {
    /// The earliest sample counts, but earns no overhead.
    pub earliest_earns_nothing: bool,
    /// Rows of flat reports lack the space between File and Line, which the header has.
    pub flat_without_gap: bool,
    /// Grouped reports warn of empty groups even when there are none.
    pub always_warn_in_groups: bool,
    /// An empty file name shows as `.`, its normal form.
    pub empty_file_is_dot: bool,
    /// Flat reports subtract the width of the wrong column from the width of function names.
    pub flat_cuts_functions: bool,
    /// In flat reports a prefix does not reduce the width of the file name, so that long names shift later columns.
    pub flat_prefix_pushes: bool,
    /// Equal frames of different instances show the name of one of them.
    pub any_spec: bool,
    /// An empty report is always attributed to too few samples.
    pub one_reason: bool,
    /// The line of totals is not wrapped.
    pub wide_totals: bool,
    /// With folded recursion, an address equal to the sample's thread number leads back to the root, since the search
    /// continues into the sample's metadata.
    pub folds_into_metadata: bool,
    /// Frames without names are equal, whatever their module.
    pub nameless_alike: bool,
    /// Names are printed as they are, with tabs and all other control characters.
    pub raw_names: bool,
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
        raw_names: true,
    };

    /// The module of a frame of which nothing else is known. Empty for all other frames, and with
    /// [`Quirks::nameless_alike`].
    pub(crate) fn module_of_nameless(self, frame: &Frame) -> &str {
        if self.nameless_alike { "" } else { frame.nameless_module() }
    }
}
