//! The tables of `top`: rows below a dim head, one of them selected.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Paragraph, Row, Table, TableState};

/// The width left beside columns of these widths and their gaps.
pub(super) fn rest(widths: &[usize], area: Rect) -> usize {
    usize::from(area.width).saturating_sub(widths.iter().sum::<usize>() + widths.len()).max(1)
}

/// Draws rows of columns below a head; the last column takes what is left.
pub(super) fn table<'a, const N: usize>(
    rows: impl Iterator<Item = Row<'a>>,
    head: [&str; N],
    widths: &[usize],
    selected: Option<usize>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let widths = widths.iter().map(|width| Constraint::Length(*width as u16)).chain([Constraint::Fill(1)]);
    let mut state = TableState::default();
    state.select(selected);
    let head = Row::new(head.map(str::to_owned)).style(dim());
    let table = Table::new(rows, widths).header(head).row_highlight_style(chosen());
    frame.render_stateful_widget(table, area, &mut state);
}

/// Prints one line in place of the first row.
pub(super) fn below_head(text: &str, area: Rect, frame: &mut Frame<'_>) {
    if area.height > 1 {
        let line = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(Paragraph::new(text.to_owned()), line);
    }
}

/// For what matters less.
pub(super) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn chosen() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}
