//! Draws `top`: a head line, the busiest threads, one table, a line of keys. Designed for 80 by 24.
//!
//! Long names and paths lose their left end, because the right end distinguishes them.

use super::help;
use super::model::{Id, Model, Row as Times, ThreadRow};
use super::screen::{Screen, Tab};
use super::table::{below_head, rest, table};
use super::tasks_reader::TasksReader;
use super::tasks_view;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row};
use stackglass_profile::sanitize;
use stackglass_report::columns::{cut_left, width, wrap};

/// Number of threads above the table of functions.
const BUSIEST: usize = 4;
/// Most lines of a message.
const MESSAGE: usize = 4;
/// Width of a percentage.
const SHARE: usize = 7;

impl Screen {
    /// Draws everything.
    pub(super) fn draw(&mut self, model: &Model, tasks: &TasksReader, frame: &mut Frame<'_>) {
        let threads = model.threads();
        let in_tables =
            matches!(self.tab, Tab::Threads | Tab::Tasks) || !self.focus.is_empty() || self.thread.is_some();
        let busiest = &threads[..if in_tables { 0 } else { threads.len().min(BUSIEST) }];
        let foot = self.foot(usize::from(frame.area().width));
        let state = self.state(&threads);
        let [head, second, top, table, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(!state.is_empty())),
            Constraint::Length(if busiest.is_empty() { 0 } else { busiest.len() as u16 + 1 }),
            Constraint::Min(3),
            Constraint::Length(foot.len() as u16),
        ])
        .areas(frame.area());
        let running = model.awake() as f64 / model.wall() as f64;
        let some = if threads.len() == 1 { "thread" } else { "threads" };
        let (program, allocations) = (&self.head, &self.allocations);
        let line = format!("{program}  {} {some}, {running:.2} on CPU{allocations}", threads.len());
        frame.render_widget(Paragraph::new(Line::styled(line, bold())), head);
        frame.render_widget(Paragraph::new(Line::styled(state, bold())), second);
        if !busiest.is_empty() {
            threads_table(model, busiest, None, top, frame);
        }
        match (self.focus.last().copied(), self.tab) {
            (Some(function), _) => self.callers_and_callees(model, function, table, frame),
            (None, Tab::Threads) => {
                let threads = self.threads(model);
                let selected = self.select(threads.len());
                threads_table(model, &threads, selected, table, frame);
                self.say_why_empty(threads.is_empty(), model, table, frame);
            }
            (None, Tab::Tasks) => {
                let shown = self.tasks(&tasks.model);
                let selected = self.select(shown.len());
                tasks_view::draw(&tasks.model, tasks.problem.as_deref(), &shown, selected, table, frame);
            }
            (None, Tab::Functions) => {
                let rows = self.functions(model);
                let selected = self.select(rows.len());
                functions_table(model, &rows, "function", selected, table, frame);
                self.say_why_empty(rows.is_empty(), model, table, frame);
            }
            (None, Tab::Lines) => {
                let rows = self.lines(model);
                let selected = self.select(rows.len());
                lines_table(model, &rows, selected, table, frame);
                self.say_why_empty(rows.is_empty(), model, table, frame);
            }
        }
        frame.render_widget(Paragraph::new(Text::from_iter(foot)), bottom);
        if let Some(first) = self.help {
            self.help = Some(help::draw(first, frame));
        }
    }

    /// Limits the selection to the rows that exist.
    fn select(&mut self, rows: usize) -> Option<usize> {
        self.selected = self.selected.min(rows.saturating_sub(1));
        (rows > 0).then_some(self.selected)
    }

    /// What limits the tables: pause, thread, filter.
    fn state(&self, threads: &[ThreadRow]) -> String {
        let mut parts = Vec::new();
        if self.paused {
            parts.push("PAUSED".to_owned());
        }
        if let Some(number) = self.thread {
            parts.push(match threads.iter().find(|thread| thread.number == number) {
                Some(thread) => format!("only thread {} {}", thread.name, thread.tid),
                None => "only a thread that has ended".to_owned(),
            });
        }
        if !self.filter.is_empty() && !self.typing {
            parts.push(format!("only names with \"{}\"", sanitize(&self.filter)));
        }
        parts.join("  ")
    }

    /// The bottom lines: a message, the filter while it is typed, or as many keys as fit.
    fn foot(&self, columns: usize) -> Vec<String> {
        if self.typing {
            let after = "_   enter keeps it, esc clears it";
            let room = columns.saturating_sub(width(after) + 8).max(8);
            return vec![format!("filter: {}{after}", cut_left(&sanitize(&self.filter), room))];
        }
        if !self.message.is_empty() {
            let mut lines = wrap(&sanitize(&self.message), columns.max(1));
            lines.truncate(MESSAGE);
            return lines;
        }
        let enter = match (self.focus.is_empty(), self.tab) {
            (true, Tab::Threads) => "enter functions",
            (true, Tab::Tasks) => "up down stacks",
            _ => "enter callers",
        };
        let back = if self.focus.is_empty() && self.thread.is_none() { "" } else { "  esc back" };
        let tables = "1 functions 2 lines 3 threads 4 tasks";
        let longest = format!("{tables}  {enter}{back}  / filter  p pause  ? help  q quit");
        let long = format!("{tables}  {enter}{back}  / filter  ? help  q quit");
        let short = format!("1 2 3 4 tables  {enter}{back}  / filter  ? help  q quit");
        let shorter = format!("1 2 3 4  {enter}{back}  ? help  q quit");
        let lines = [longest, long, short, shorter, "? help  q quit".into()];
        vec![lines.into_iter().find(|line| width(line) <= columns).unwrap_or_else(|| "? q".into())]
    }

    fn callers_and_callees(&mut self, model: &Model, function: Id, area: Rect, frame: &mut Frame<'_>) {
        let (callers, callees) = self.around(model, function);
        let selected = self.select(callers.len() + callees.len());
        // Callers get the rows that they need, up to half.
        let need = callers.len().clamp(1, usize::from(area.height) / 2) as u16 + 1;
        let [title, upper, lower] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(need), Constraint::Fill(1)])
                .areas(area);
        let name = cut_left(model.name(function), usize::from(area.width));
        frame.render_widget(Paragraph::new(Line::styled(name, bold())), title);
        let above = selected.filter(|row| *row < callers.len());
        functions_table(model, &callers, "called by", above, upper, frame);
        if callers.is_empty() {
            let why = if self.filter.is_empty() { "none: threads start here" } else { "no matching name" };
            below_head(why, upper, frame);
        }
        let below = selected.and_then(|row| row.checked_sub(callers.len()));
        functions_table(model, &callees, "calls (itself: own time)", below, lower, frame);
        if callees.is_empty() {
            let why = if self.filter.is_empty() { "it has not run recently" } else { "no matching name" };
            below_head(why, lower, frame);
        }
    }

    fn say_why_empty(&self, empty: bool, model: &Model, area: Rect, frame: &mut Frame<'_>) {
        if !empty {
            return;
        }
        let runs = !model.functions(self.thread).is_empty();
        below_head(
            match (model.is_empty(), self.filter.is_empty(), self.tab) {
                (true, ..) => "sampling …",
                (_, false, Tab::Threads) => "no thread matches the filter (esc clears it)",
                (_, false, _) if runs => "no name matches the filter (esc clears it)",
                (_, _, Tab::Lines) if runs => "no line information: build with debug information (-g)",
                _ if self.thread.is_some() => "this thread has not run in the last ten seconds",
                _ => "nothing has run in the last ten seconds",
            },
            area,
            frame,
        );
    }
}

fn threads_table(
    model: &Model,
    threads: &[ThreadRow],
    selected: Option<usize>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let wall = model.wall();
    let name = threads.iter().map(|thread| width(&thread.name)).max().unwrap_or(0).clamp(6, 16);
    let widths = [SHARE, SHARE, 7, name];
    let room = rest(&widths, area);
    let rows = threads.iter().map(|thread| {
        let hottest = thread.hottest.map_or("", |id| model.name(id));
        Row::new([
            share(thread.awake, wall),
            share(thread.waiting, wall),
            format!("{:>7}", thread.tid),
            thread.name.clone(),
            cut_left(hottest, room).into_owned(),
        ])
    });
    table(rows, [" CPU %", "ready %", "    tid", "thread", "mostly in"], &widths, selected, area, frame);
}

fn functions_table(
    model: &Model,
    rows: &[Times],
    title: &str,
    selected: Option<usize>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let wall = model.wall();
    let widths = [SHARE, SHARE];
    let room = rest(&widths, area);
    let lines = rows.iter().map(|row| {
        let name = cut_left(model.name(row.id), room).into_owned();
        Row::new([share(row.own, wall), share(row.total, wall), name])
    });
    table(lines, ["  own %", "total %", title], &widths, selected, area, frame);
}

fn lines_table(model: &Model, rows: &[Times], selected: Option<usize>, area: Rect, frame: &mut Frame<'_>) {
    let wall = model.wall();
    let lines: Vec<_> = rows
        .iter()
        .filter_map(|row| model.line(row.id).map(|line| (row.own, &*line.at, model.name(line.function))))
        .collect();
    // Each gets the width that it needs. If that is too much, the function keeps two fifths.
    let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width).max().unwrap_or(0);
    let place = longest(&mut lines.iter().map(|line| line.1)).max(4);
    let function = longest(&mut lines.iter().map(|line| line.2));
    let both = rest(&[SHARE, 0], area);
    let place = place.min(both.saturating_sub(function.min(both * 2 / 5)));
    let widths = [SHARE, place];
    let room = rest(&widths, area);
    let lines = lines.iter().map(|(own, at, function)| {
        Row::new([share(*own, wall), cut_left(at, place).into_owned(), cut_left(function, room).into_owned()])
    });
    table(lines, ["  own %", "line", "function"], &widths, selected, area, frame);
}

fn share(part: u64, wall: u64) -> String {
    match part as f64 / wall as f64 * 100.0 {
        0.0 => String::new(),
        percent => format!("{percent:>SHARE$.1}"),
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{recording, with_lines};
    use super::super::model::WINDOW;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn rendered(screen: &mut Screen, model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(model, &TasksReader::new(1), frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(usize::from(width));
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn paths_keep_their_ends_and_functions_their_room() {
        let path = "a/very/long/way/to/the/place/where/the/source/lies/multiarch/memmove.S:351";
        let function = "some::module::with::a::long::path::of::Things::and::the_function_itself";
        let model = with_lines(&[(function, path, 60), ("short", "lib.rs:7", 20), (function, "x.rs:1", 5)]);
        let mut screen = Screen { tab: Tab::Lines, ..Screen::default() };
        for columns in [80, 60] {
            let text = rendered(&mut screen, &model, columns, 24);
            let row =
                text.lines().find(|line| line.contains("memmove.S:351")).unwrap_or_else(|| panic!("{text}"));
            assert!(row.contains("the_function_itself") && row.matches('…').count() == 2, "{row}");
            assert!(text.contains(" lib.rs:7 ") && text.contains(" short"), "{text}");
        }
        let text = rendered(&mut screen, &model, 200, 24);
        assert!(text.contains(path) && text.contains(function), "{text}");
        screen.tab = Tab::Functions;
        let text = rendered(&mut screen, &model, 60, 24);
        assert!(text.contains(" …") && text.contains("::of::Things::and::the_function_itself"), "{text}");
    }

    #[test]
    fn empty_tables_say_why() {
        let model = with_lines(&[("work", "lib.rs:7", 20)]);
        let mut screen = Screen { filter: "zzz".into(), ..Screen::default() };
        assert!(rendered(&mut screen, &model, 80, 24).contains("no name matches the filter"));
        screen.filter.clear();
        screen.thread = Some(stackglass_profile::ThreadNumber(2));
        assert!(rendered(&mut screen, &model, 80, 24).contains("this thread has not run"));
        screen.thread = None;
        screen.focus.push(0);
        assert!(rendered(&mut screen, &model, 80, 24).contains("threads start here"));
        let text = rendered(&mut Screen::default(), &model, 80, 24);
        assert!(text.contains("2 threads, 0.20 on CPU") && !text.contains("1 threads"), "{text}");
    }

    /// Names reach the screen by the model, which writes acting characters out; see `tests/hostile_names.rs`.
    #[test]
    fn no_name_acts_on_the_terminal() {
        const ACTING: [char; 8] =
            ['\u{9b}', '\u{61c}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{200b}', '\u{feff}', '\u{e0041}'];
        let evil: String = ACTING.iter().collect();
        let mut seen = recording(&[(1, &[1], 50)]);
        let name: std::sync::Arc<str> = format!("n{evil}").into();
        seen.threads.iter_mut().for_each(|thread| thread.name = name.clone());
        let frame = stackglass_profile::Frame {
            func: name.clone(),
            file: name.clone(),
            line: 3,
            ..stackglass_profile::Frame::unknown(1)
        };
        seen.symbols.set(stackglass_profile::LocationId(0), [frame]);
        let mut model = Model::of_intervals(WINDOW);
        model.add(&seen, 0, 100);
        let mut screen = Screen { message: evil.clone(), ..Screen::default() };
        let mut all = rendered(&mut screen, &model, 200, 24);
        for tab in [Tab::Functions, Tab::Lines, Tab::Threads] {
            let mut screen = Screen { tab, filter: evil.clone(), ..Screen::default() };
            all += &rendered(&mut screen, &model, 200, 24);
            screen.filter.clear();
            all += &rendered(&mut screen, &model, 200, 24);
            screen.focus.push(0);
            all += &rendered(&mut screen, &model, 200, 24);
        }
        assert!(!all.contains(ACTING), "{}", all.escape_debug());
        assert!(all.contains("n\\u{9b}\\u{61c}"), "{all}");
    }

    #[test]
    fn keys_fit_and_no_size_is_too_small() {
        let mut screen = Screen { head: "server 1234".into(), ..Screen::default() };
        let model = Model::of_intervals(WINDOW);
        for width in [80, 60, 40] {
            let text = rendered(&mut screen, &model, width, 24);
            for word in ["server 1234", "? help  q quit", "own %", "sampling"] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        screen.message = "words ".repeat(100);
        for (width, height) in [(20, 5), (1, 1), (200, 60)] {
            rendered(&mut screen, &model, width, height);
        }
    }
}
