//! How `top` looks: a head line, the busiest threads, one table, a line of keys. Good at 80 by 24.

use super::model::{Id, Model, Row as Times};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Table, TableState};

/// Which table is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tab {
    /// Functions by own time.
    #[default]
    Functions,
    /// Lines by own time.
    Lines,
    /// All threads.
    Threads,
}

/// What is on the screen beside the figures.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) tab: Tab,
    /// The function whose callers and callees are shown.
    pub(crate) focus: Option<Id>,
    pub(crate) selected: usize,
    pub(crate) filter: String,
    /// Keys go to the filter.
    pub(crate) typing: bool,
    pub(crate) paused: bool,
    pub(crate) help: bool,
    /// Told once, at the bottom.
    pub(crate) message: String,
    /// Program, process and driver.
    pub(crate) head: String,
}

const HELP: &str = "\
up down j k    choose a row             enter    callers and callees of it
1 2 3, tab     functions, lines, threads    esc  back
/              filter by name           p space  pause, go on
s              save a recording         q        leave

Times are those of the last ten seconds. own: in the function itself; total:
in it and in what it calls. 100 % is one processor. Threads that sleep have no
share. The program runs on; what top has started itself ends with it.";

impl Screen {
    /// The functions of the table as it is shown, for keys that act on one.
    pub(crate) fn rows(&self, model: &Model) -> Vec<Times> {
        let rows = match (self.focus, self.tab) {
            (Some(function), _) => model.callers(function),
            (None, Tab::Lines) => model.lines(),
            _ => model.functions(),
        };
        rows.into_iter().filter(|row| self.shows(model.name(row.id))).collect()
    }

    fn shows(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// Draws everything.
    pub(crate) fn draw(&mut self, model: &Model, frame: &mut Frame<'_>) {
        let threads = model.threads();
        let shown_threads =
            if self.tab == Tab::Threads || self.focus.is_some() { 0 } else { threads.len().min(4) };
        let [head, top, table, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(if shown_threads == 0 { 0 } else { shown_threads as u16 + 1 }),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let running = model.awake() as f64 / model.wall() as f64;
        let paused = if self.paused { "  PAUSED" } else { "" };
        let filter =
            if self.filter.is_empty() { String::new() } else { format!("  filter: {}", self.filter) };
        let who = &self.head;
        let line = format!("{who}  {} threads  {running:.2} running{paused}{filter}", threads.len());
        frame.render_widget(Paragraph::new(Line::styled(line, bold())), head);
        if shown_threads > 0 {
            self.threads(model, &threads[..shown_threads], top, frame, false);
        }
        match (self.focus, self.tab) {
            (Some(function), _) => self.callers_and_callees(model, function, table, frame),
            (None, Tab::Threads) => {
                let matching: Vec<_> =
                    threads.into_iter().filter(|thread| self.shows(&thread.name)).collect();
                self.threads(model, &matching, table, frame, true);
            }
            (None, tab) => {
                let rows = self.rows(model);
                self.selected = self.selected.min(rows.len().saturating_sub(1));
                let title = if tab == Tab::Lines { "line, function" } else { "function" };
                times(model, &rows, title, Some(self.selected), table, frame);
            }
        }
        frame.render_widget(Paragraph::new(self.foot()), foot);
        if self.help {
            let area = middle(frame.area(), 80, 12);
            frame.render_widget(Clear, area);
            frame.render_widget(
                Paragraph::new(HELP).block(Block::new().borders(Borders::ALL).title("keys")),
                area,
            );
        }
    }

    fn foot(&self) -> String {
        if self.typing {
            return format!("filter: {}_   enter keeps it, esc drops it", self.filter);
        }
        if !self.message.is_empty() {
            return self.message.clone();
        }
        "1 functions 2 lines 3 threads  enter callers  / filter  p pause  ? help  q quit".into()
    }

    fn callers_and_callees(&mut self, model: &Model, function: Id, area: Rect, frame: &mut Frame<'_>) {
        let [title, upper, lower] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Paragraph::new(Line::styled(model.name(function).to_owned(), bold())), title);
        let rows = self.rows(model);
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        times(model, &rows, "called by", Some(self.selected), upper, frame);
        times(model, &model.callees(function), "calls (itself: own time)", None, lower, frame);
    }

    fn threads(
        &mut self,
        model: &Model,
        threads: &[super::model::ThreadRow],
        area: Rect,
        frame: &mut Frame<'_>,
        choose: bool,
    ) {
        let wall = model.wall();
        let rows = threads.iter().map(|thread| {
            Row::new([
                share(thread.awake, wall),
                share(thread.waiting, wall),
                thread.tid.to_string(),
                thread.name.clone(),
                thread.hottest.map_or_else(String::new, |id| model.name(id).to_owned()),
            ])
        });
        let widths = [
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(8),
            Constraint::Length(16),
            Constraint::Fill(1),
        ];
        let head = Row::new(["runs %", "waits", "tid", "thread", "mostly in"]).style(dim());
        let mut state = TableState::default();
        if choose {
            self.selected = self.selected.min(threads.len().saturating_sub(1));
            state.select(Some(self.selected));
        }
        let table = Table::new(rows, widths).header(head).row_highlight_style(chosen());
        frame.render_stateful_widget(table, area, &mut state);
    }
}

fn times(
    model: &Model,
    rows: &[Times],
    title: &str,
    selected: Option<usize>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let wall = model.wall();
    let lines = rows
        .iter()
        .map(|row| Row::new([share(row.own, wall), share(row.total, wall), model.name(row.id).to_owned()]));
    let widths = [Constraint::Length(6), Constraint::Length(7), Constraint::Fill(1)];
    let head = Row::new(["own %".to_owned(), "total %".to_owned(), title.to_owned()]).style(dim());
    let mut state = TableState::default();
    state.select(selected.filter(|_| !rows.is_empty()));
    let table = Table::new(lines, widths).header(head).row_highlight_style(chosen());
    frame.render_stateful_widget(table, area, &mut state);
}

fn share(part: u64, wall: u64) -> String {
    match part as f64 / wall as f64 * 100.0 {
        0.0 => String::new(),
        percent => format!("{percent:.1}"),
    }
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn chosen() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn shown(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(&Model::default(), frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(usize::from(width));
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn keys_and_help_fit_eighty_columns() {
        let mut screen = Screen { head: "server 1234".into(), ..Screen::default() };
        let text = shown(&mut screen, 80, 24);
        assert!(
            text.contains("server 1234") && text.contains("? help  q quit") && text.contains("own %"),
            "{text}"
        );
        screen.help = true;
        let text = shown(&mut screen, 80, 24);
        for line in HELP.lines() {
            assert!(text.contains(line), "{line} is cut: {text}");
        }
        // Too small for anything: drawn all the same.
        for (width, height) in [(20, 5), (1, 1), (200, 60)] {
            shown(&mut screen, width, height);
        }
    }
}
