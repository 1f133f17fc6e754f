//! The layout of output: width, colours and links, as the terminal, the environment and flags ask for.

use clap::Args;
use stackglass_report::{FILE_COLUMNS, Links, MOST_COLUMNS, Style};
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Flags for the layout.
#[derive(Args, Clone, Debug)]
pub(crate) struct LayoutFlags {
    /// Width in columns [default: $COLUMNS, or the terminal's width]
    #[arg(long, alias = "width", value_name = "COLUMNS", value_parser = columns)]
    pub(crate) cols: Option<usize>,

    /// Do not turn file names into links
    #[arg(long)]
    no_links: bool,
}

impl LayoutFlags {
    /// The layout for standard output.
    pub(crate) fn of_stdout(&self) -> Layout {
        let mut layout = Layout::from_stream(&std::io::stdout(), self.cols);
        layout.links = layout.links.filter(|_| !self.no_links);
        layout
    }
}

/// Width of a short report in a pipe or file.
const SHORT_COLUMNS: usize = 80;
/// Height of a short report in a pipe or file.
const SHORT_ROWS: usize = 40;

/// The layout of one output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Width in columns.
    pub(crate) columns: usize,
    /// Width of a short report, whose columns do not grow with the unlimited width of a file.
    pub(crate) short_columns: usize,
    /// With colours or without.
    pub(crate) style: Style,
    /// Height in lines.
    pub(crate) rows: usize,
    /// Whether the output is a terminal.
    pub(crate) terminal: bool,
    /// Links for file names, if wanted.
    pub(crate) links: Option<Links>,
}

impl Layout {
    /// The layout for `stream`; `width` overrides the width of the terminal.
    pub(crate) fn from_stream(stream: &(impl AsFd + IsTerminal), width: Option<usize>) -> Layout {
        let terminal = stream.is_terminal();
        let measured = if terminal { terminal_size::terminal_size_of(stream) } else { None };
        let chosen = width
            .or_else(|| variable("COLUMNS"))
            .or(measured.map(|(width, _)| width.0.into()))
            .filter(|columns| *columns > 0);
        let columns = chosen.unwrap_or(if terminal { SHORT_COLUMNS } else { FILE_COLUMNS });
        let short_columns = chosen.unwrap_or(SHORT_COLUMNS);
        let rows = variable("LINES").or_else(|| measured.map(|(_, height)| height.0.into()));
        let rows = rows.filter(|rows| *rows > 0).unwrap_or(SHORT_ROWS);
        let style = if terminal && wants_colours() { Style::Ansi } else { Style::Plain };
        let links = (style == Style::Ansi).then(links);
        Layout { columns, short_columns, rows, style, terminal, links }
    }

    /// The layout for a file, `width` columns wide if given.
    pub(crate) fn of_file(width: Option<usize>) -> Layout {
        Layout {
            columns: width.unwrap_or(FILE_COLUMNS),
            short_columns: width.unwrap_or(SHORT_COLUMNS),
            rows: SHORT_ROWS,
            style: Style::Plain,
            terminal: false,
            links: None,
        }
    }

    /// The layout for standard error.
    pub(crate) fn of_stderr() -> Layout {
        Layout::from_stream(&std::io::stderr(), None)
    }
}

/// Links to files on this machine, opened in the user's editor if that has URLs.
fn links() -> Links {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Links::new(|name| std::env::var(name).ok().filter(|value| !value.is_empty()), &host)
}

fn columns(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|columns| (1..=MOST_COLUMNS).contains(columns))
        .ok_or_else(|| format!("expected a number of columns, such as 80, and at most {MOST_COLUMNS}"))
}

/// The value of `$COLUMNS` or `$LINES`, if it is a sensible number.
fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.trim().parse().ok().filter(|number| (1..=MOST_COLUMNS).contains(number))
}

/// Any value but an empty one turns colours off: <https://no-color.org>.
fn wants_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
