//! The terminal's second screen and raw keys, given back however the view ends.
//!
//! Nothing here may fail loudly on the way out: the terminal may be gone by then, and standard error with it.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame, Terminal};
use std::io;
use std::mem::ManuallyDrop;

/// The whole terminal while we have it.
pub(super) struct FullScreen {
    /// Its own drop would write to a standard error that may be gone, and panic.
    terminal: ManuallyDrop<DefaultTerminal>,
    ours: bool,
}

impl FullScreen {
    /// Takes the terminal.
    pub(super) fn enter() -> io::Result<FullScreen> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(FullScreen { terminal: ManuallyDrop::new(terminal), ours: true }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws anew.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Gives it back, as far as it is still there.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.ours) {
            let _ = self.terminal.show_cursor();
            let _ = ratatui::try_restore();
        }
    }

    /// Takes it again: somebody else had it.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        // Raw keys are asked for only by who thinks that they are not raw.
        self.leave();
        self.ours = true;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        // Anew, since `Terminal::clear` asks the terminal where the cursor is, and the answer comes as keys.
        self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        Ok(())
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.leave();
    }
}
