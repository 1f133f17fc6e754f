//! The state of the view (table, selection, filter) and what each key does to it.

use super::model::{Id, Model, Row, ThreadRow};
use super::tasks_model::{TaskRow, TasksModel};
use super::tasks_view;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stackglass_profile::ThreadNumber;
use stackglass_report::tasks::TaskGroup;

/// The table that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Tab {
    /// Functions by own time.
    #[default]
    Functions,
    /// Lines by own time.
    Lines,
    /// All threads.
    Threads,
    /// Async tasks by their await stacks.
    Tasks,
}

/// What a key asks the loop to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Nothing.
    Nothing,
    /// End the view.
    Leave,
    /// Save a recording.
    Save,
    /// Suspend top.
    Suspend,
}

/// The state of the view.
#[derive(Default)]
pub(super) struct Screen {
    pub(super) tab: Tab,
    /// Functions entered; callers and callees of the last one are shown.
    pub(super) focus: Vec<Id>,
    /// Only functions and lines of this thread are shown; `None`: of all threads.
    pub(super) thread: Option<ThreadNumber>,
    pub(super) selected: usize,
    pub(super) filter: String,
    /// Whether keys are added to the filter.
    pub(super) typing: bool,
    pub(super) paused: bool,
    /// The first line of the help, while the help is open.
    pub(super) help: Option<usize>,
    /// A message at the bottom, until the next key.
    pub(super) message: String,
    /// Program, process and driver.
    pub(super) head: String,
    /// Rate of allocations and live bytes, as text; empty if they are not recorded.
    pub(super) allocations: String,
}

impl Screen {
    /// The threads that pass the filter.
    pub(super) fn threads(&self, model: &Model) -> Vec<ThreadRow> {
        model.threads().into_iter().filter(|thread| self.shows(&thread.name)).collect()
    }

    /// The groups of tasks that pass the filter.
    pub(super) fn tasks<'a>(&self, tasks: &'a TasksModel) -> Vec<(TaskGroup<'a>, TaskRow)> {
        tasks_view::shown(tasks, |name| self.shows(name))
    }

    /// The functions that pass the filter.
    pub(super) fn functions(&self, model: &Model) -> Vec<Row> {
        self.filtered(model, model.functions(self.thread))
    }

    /// The lines that pass the filter.
    pub(super) fn lines(&self, model: &Model) -> Vec<Row> {
        let shows = |row: &Row| {
            let line = model.line(row.id);
            line.is_some_and(|line| self.shows(&line.at) || self.shows(model.name(line.function)))
        };
        model.lines(self.thread).into_iter().filter(shows).collect()
    }

    /// The callers and callees that pass the filter.
    pub(super) fn around(&self, model: &Model, function: Id) -> (Vec<Row>, Vec<Row>) {
        (
            self.filtered(model, model.callers(self.thread, function)),
            self.filtered(model, model.callees(self.thread, function)),
        )
    }

    fn filtered(&self, model: &Model, rows: Vec<Row>) -> Vec<Row> {
        rows.into_iter().filter(|row| self.shows(model.name(row.id))).collect()
    }

    fn shows(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent, model: &Model) -> Action {
        self.message.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Action::Leave,
                KeyCode::Char('z') => return Action::Suspend,
                KeyCode::Char('u') if self.typing => self.filter.clear(),
                _ => {}
            }
            return Action::Nothing;
        }
        if self.typing {
            self.type_filter(key.code);
        } else if self.help.is_some() {
            self.read_help(key.code);
        } else {
            return self.command(key.code, model);
        }
        Action::Nothing
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
    }

    /// Scrolls the help. Drawing limits the position.
    fn read_help(&mut self, key: KeyCode) {
        let first = self.help.unwrap_or(0);
        self.help = match key {
            KeyCode::Up | KeyCode::Char('k') => Some(first.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => Some(first + 1),
            KeyCode::PageUp => Some(first.saturating_sub(5)),
            KeyCode::PageDown => Some(first + 5),
            _ => None,
        };
    }

    fn command(&mut self, key: KeyCode, model: &Model) -> Action {
        match key {
            KeyCode::Char('q') => return Action::Leave,
            KeyCode::Char('s') => return Action::Save,
            KeyCode::Char('?' | 'h') => self.help = Some(0),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('1') => self.show(Tab::Functions),
            KeyCode::Char('2') => self.show(Tab::Lines),
            KeyCode::Char('3') => self.show(Tab::Threads),
            KeyCode::Char('4') => self.show(Tab::Tasks),
            KeyCode::Tab => self.show(match self.tab {
                Tab::Functions => Tab::Lines,
                Tab::Lines => Tab::Threads,
                Tab::Threads => Tab::Tasks,
                Tab::Tasks => Tab::Functions,
            }),
            // Drawing limits the selection to the last row.
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected += 10,
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = usize::MAX / 2,
            KeyCode::Enter => self.enter(model),
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            _ => {}
        }
        Action::Nothing
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.focus.clear();
        self.selected = 0;
        if matches!(tab, Tab::Threads | Tab::Tasks) {
            self.thread = None;
        }
    }

    /// Opens the selected thread's functions, or the selected function's callers and callees. The filter is cleared.
    fn enter(&mut self, model: &Model) {
        if self.focus.is_empty() && self.tab == Tab::Threads {
            if let Some(thread) = self.threads(model).get(self.selected) {
                self.show(Tab::Functions);
                self.thread = Some(thread.number);
                self.filter.clear();
            }
            return;
        }
        if self.tab == Tab::Tasks {
            return;
        }
        let chosen = match (self.focus.last(), self.tab) {
            (Some(&function), _) => {
                let (callers, callees) = self.around(model, function);
                let chosen = callers.iter().chain(&callees).nth(self.selected).map(|row| row.id);
                chosen.filter(|chosen| *chosen != function)
            }
            (None, Tab::Lines) => {
                let line = self.lines(model).get(self.selected).and_then(|row| model.line(row.id));
                line.map(|line| line.function)
            }
            _ => self.functions(model).get(self.selected).map(|row| row.id),
        };
        if let Some(function) = chosen {
            self.focus.push(function);
            self.selected = 0;
            self.filter.clear();
        }
    }

    /// Goes one step back.
    fn back(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.focus.pop().is_none() && self.thread.is_some() {
            self.show(Tab::Threads);
        }
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::recording;
    use super::super::model::WINDOW;
    use super::*;

    fn press(screen: &mut Screen, model: &Model, keys: &[KeyCode]) {
        for key in keys {
            assert_eq!(screen.key(KeyEvent::from(*key), model), Action::Nothing);
        }
    }

    fn names(model: &Model, rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| model.name(row.id).to_owned()).collect()
    }

    /// Thread 1 runs 2 under 1 for 50 ns; thread 2 runs 3 under 1 for 90 ns.
    fn model() -> Model {
        let mut model = Model::of_intervals(WINDOW);
        model.add(&recording(&[(1, &[2, 1], 50), (2, &[3, 1], 90)]), 0, 100);
        model
    }

    #[test]
    fn enter_on_a_thread_shows_its_functions_and_theirs() {
        let (model, mut screen) = (model(), Screen::default());
        press(&mut screen, &model, &[KeyCode::Char('3'), KeyCode::Down, KeyCode::Enter]);
        assert_eq!((screen.tab, screen.thread), (Tab::Functions, Some(ThreadNumber(1))));
        assert_eq!(names(&model, &screen.functions(&model)), ["0x2", "0x1"]);
        // The root function has no callers; only callees of this thread are shown.
        press(&mut screen, &model, &[KeyCode::Down, KeyCode::Enter]);
        let (callers, callees) = screen.around(&model, screen.focus[0]);
        assert_eq!((names(&model, &callers), names(&model, &callees)), (vec![], vec!["0x2".to_owned()]));
        // On to a callee, then back to the start.
        press(&mut screen, &model, &[KeyCode::Enter]);
        assert_eq!(model.name(screen.focus[1]), "0x2");
        press(&mut screen, &model, &[KeyCode::Esc, KeyCode::Esc]);
        assert!(screen.focus.is_empty() && screen.thread.is_some());
        press(&mut screen, &model, &[KeyCode::Esc]);
        assert_eq!((screen.tab, screen.thread), (Tab::Threads, None));
    }

    #[test]
    fn enter_takes_the_row_that_the_filter_left() {
        let (model, mut screen) = (model(), Screen::default());
        let keys = "3/Slower".chars().map(KeyCode::Char).chain([KeyCode::Enter, KeyCode::Enter]);
        press(&mut screen, &model, &keys.collect::<Vec<_>>());
        assert_eq!(screen.thread, Some(ThreadNumber(1)), "the filter hides the first row");
        assert_eq!(screen.filter, "");
        // A function that calls nothing but itself is not entered twice.
        press(&mut screen, &model, &[KeyCode::Enter, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(screen.focus.len(), 1);
    }

    #[test]
    fn control_keys_are_not_text() {
        let (model, mut screen) = (model(), Screen::default());
        press(&mut screen, &model, &[KeyCode::Char('/'), KeyCode::Char('(')]);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(screen.key(control('z'), &model), Action::Suspend);
        assert_eq!(
            (screen.filter.as_str(), screen.functions(&model).len()),
            ("(", 0),
            "a filter is plain text"
        );
        assert_eq!(screen.key(control('u'), &model), Action::Nothing);
        assert_eq!(screen.filter, "");
        assert_eq!(screen.key(control('c'), &model), Action::Leave);
    }
}
