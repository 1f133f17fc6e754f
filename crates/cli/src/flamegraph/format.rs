//! The format of the output: given by a flag or by the extension of the file.

use crate::failure::Failure;
use crate::input;
use std::ffi::OsStr;
use std::path::Path;

/// Kinds of output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// A page.
    Html,
    /// A vector picture.
    Svg,
    /// A bitmap.
    Png,
    /// A graph that Julia reads.
    Jlprof,
}

impl Format {
    /// All of them.
    pub(crate) const ALL: &[Format] = &[Format::Html, Format::Svg, Format::Png, Format::Jlprof];

    /// Its name, and its extension.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Jlprof => "jlprof",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            Format::Html => "a page: search, zoom, threads and tasks",
            Format::Svg => "a picture for documents",
            Format::Png => "a picture in pixels",
            Format::Jlprof => "a graph for Julia's FlameGraphs (form 2)",
        }
    }
}

/// The format that the flag gives, else the extension.
pub(crate) fn choose(flag: Option<Format>, output: &Path) -> Result<Format, Failure> {
    if let Some(format) = flag {
        return Ok(format);
    }
    if input::is_stream(output) {
        return Ok(Format::Svg);
    }
    let extension = output.extension().and_then(OsStr::to_str).unwrap_or("");
    let is = |format: &&Format| format.word().eq_ignore_ascii_case(extension);
    let named = Format::ALL.iter().find(is).copied();
    named.or_else(|| extension.eq_ignore_ascii_case("htm").then_some(Format::Html)).ok_or_else(|| Failure {
        status: 2,
        line: format!(
            "cannot tell the format from the name {}: use .html, .svg, .png or .jlprof, or give --format",
            output.display()
        ),
    })
}
