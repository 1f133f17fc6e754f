//! What the terminal is like: its width, whether colours are wanted.

use stackglass_profile::Style;
use stackglass_profile::report::FILE_COLUMNS;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Where something is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    /// Width in columns.
    pub(crate) columns: usize,
    /// Colours or none.
    pub(crate) style: Style,
    /// A person sees it at once.
    pub(crate) terminal: bool,
}

impl Look {
    /// How `stream` looks, `width` overruling its own width.
    pub(crate) fn of(stream: &(impl AsFd + IsTerminal), width: Option<usize>) -> Look {
        let terminal = stream.is_terminal();
        let measured = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
        let columns = width
            .or_else(columns_variable)
            .or_else(|| if terminal { measured() } else { Some(FILE_COLUMNS) })
            .filter(|columns| *columns > 0)
            .unwrap_or(80);
        let style = if terminal && wants_colours() { Style::Ansi } else { Style::Plain };
        Look { columns, style, terminal }
    }

    /// How standard error looks.
    pub(crate) fn of_stderr() -> Look {
        Look::of(&std::io::stderr(), None)
    }
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
