//! What the terminal is like: its width, whether colours and links are wanted.

use clap::Args;
use stackglass_report::{FILE_COLUMNS, Links, Style};
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// How something is to look, as flags.
#[derive(Args, Clone, Debug)]
pub(crate) struct LayoutFlags {
    /// Columns to use [default: those of the terminal; $COLUMNS]
    #[arg(long, alias = "width", value_name = "COLUMNS", value_parser = columns)]
    pub(crate) cols: Option<usize>,

    /// Do not make file names links that the terminal can open
    #[arg(long)]
    no_links: bool,
}

impl LayoutFlags {
    /// How standard output shall look.
    pub(crate) fn of_stdout(&self) -> Layout {
        let mut look = Layout::of(&std::io::stdout(), self.cols);
        look.links = look.links.filter(|_| !self.no_links);
        look
    }
}

/// Where something is written to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Width in columns.
    pub(crate) columns: usize,
    /// Colours or none.
    pub(crate) style: Style,
    /// A person sees it at once.
    pub(crate) terminal: bool,
    /// Where file names lead.
    pub(crate) links: Option<Links>,
}

impl Layout {
    /// How `stream` looks, `width` overruling its own width.
    pub(crate) fn of(stream: &(impl AsFd + IsTerminal), width: Option<usize>) -> Layout {
        let terminal = stream.is_terminal();
        let measured = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
        let columns = width
            .or_else(columns_variable)
            .or_else(|| if terminal { measured() } else { Some(FILE_COLUMNS) })
            .filter(|columns| *columns > 0)
            .unwrap_or(80);
        let style = if terminal && wants_colours() { Style::Ansi } else { Style::Plain };
        let links = (style == Style::Ansi).then(links);
        Layout { columns, style, terminal, links }
    }

    /// How standard error looks.
    pub(crate) fn of_stderr() -> Layout {
        Layout::of(&std::io::stderr(), None)
    }
}

/// Links to this machine's files, in the user's editor where it has addresses for them.
fn links() -> Links {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Links::new(|name| std::env::var(name).ok().filter(|value| !value.is_empty()), &host)
}

fn columns(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|columns| *columns > 0).ok_or_else(|| "write a number of columns: 80".into())
}

/// `$COLUMNS`, where it is a number.
fn columns_variable() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0)
}

/// <https://no-color.org>: any value but an empty one turns colours off.
fn wants_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
