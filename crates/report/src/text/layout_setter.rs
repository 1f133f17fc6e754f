//! The setters of width, colours and links, which are the same in each report.

/// A setter of a report: of its width in columns, with the least that it needs (`cols: 60`), of its `style`, or of its `links`. It
/// sets the field of that name.
#[macro_export]
macro_rules! layout_setter {
    (cols: $least:literal) => {
        #[doc = concat!("Width in terminal columns; at least ", $least, " are used.")]
        #[must_use]
        pub fn cols(mut self, columns: usize) -> Self {
            self.cols = columns.clamp($least, $crate::MOST_COLUMNS);
            self
        }
    };
    (style) => {
        /// Colours, or none.
        #[must_use]
        pub fn style(mut self, style: $crate::Style) -> Self {
            self.style = style;
            self
        }
    };
    (links) => {
        /// Turns locations into links. Has no effect without colours.
        #[must_use]
        pub fn links(mut self, links: Option<$crate::Links>) -> Self {
            self.links = links;
            self
        }
    };
}
