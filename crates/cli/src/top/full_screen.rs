//! The alternate screen of the terminal and raw keys, restored however the view ends.
//!
//! Leaving must not panic: the terminal may be gone by then, and standard error with it.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame, Terminal};
use std::io;
use std::mem::ManuallyDrop;

/// The terminal while the view has it.
pub(super) struct FullScreen {
    /// Not dropped: its drop writes to a standard error that may be gone, and would panic.
    terminal: ManuallyDrop<DefaultTerminal>,
    active: bool,
}

impl FullScreen {
    /// Takes over the terminal.
    pub(super) fn enter() -> io::Result<FullScreen> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(FullScreen { terminal: ManuallyDrop::new(terminal), active: true }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Redraws.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Restores the terminal, if it is still there.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.active) {
            let _ = self.terminal.show_cursor();
            let _ = ratatui::try_restore();
        }
    }

    /// Takes over the terminal again, after another program had it.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        // crossterm enables raw keys only if it believes that they are off.
        self.leave();
        self.active = true;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        // A new one: `Terminal::clear` asks the terminal for the cursor position, and the answer would arrive as keys.
        self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        Ok(())
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.leave();
    }
}
