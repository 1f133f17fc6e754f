//! What is drawn: told by a flag or by the extension of the output.

use crate::failure::Failure;
use crate::input;
use std::ffi::OsStr;
use std::path::Path;

/// Kinds of output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// A page.
    Html,
    /// A picture from spans.
    Svg,
    /// A picture of pixels.
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
            Format::Svg => "a still picture for documents",
            Format::Png => "the same in pixels",
            Format::Jlprof => "a graph for Julia's FlameGraphs (form 2)",
        }
    }
}

/// What the flag says, else the extension.
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
            "the extension of {} says none of .html, .svg, .png, .jlprof: use one of them, or --to",
            output.display()
        ),
    })
}
