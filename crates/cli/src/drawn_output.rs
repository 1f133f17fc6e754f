//! Where a page or a picture goes: to a file, which `--open` shows, or to stdout.

use crate::failure::Failure;
use crate::{browser, input, message};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The output of a verb that draws.
pub(crate) struct DrawnOutput {
    path: PathBuf,
    opens: bool,
}

impl DrawnOutput {
    /// An output for `what`: pages or pictures. Refuses the input itself, a terminal, and to open what is written to stdout.
    pub(crate) fn new(path: PathBuf, opens: bool, input: &Path, what: &str) -> Result<DrawnOutput, Failure> {
        let is_stream = input::is_stream(&path);
        if is_stream && opens {
            let line = "--open needs a file, not stdout: name one with -o".into();
            return Err(Failure { status: 2, line });
        }
        if is_stream && io::stdout().is_terminal() {
            return Err(Failure::new(format!("{what} are not written to a terminal: name a file with -o")));
        }
        input::refuse_same(input, &path)?;
        Ok(DrawnOutput { path, opens })
    }

    /// Writes it. For a file, prints its name with what `summary` says of it, and opens it if that was asked for.
    pub(crate) fn write(
        &self,
        draw: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        summary: impl FnOnce(&Path) -> String,
    ) -> Result<(), Failure> {
        if input::is_stream(&self.path) {
            let mut out = io::stdout().lock();
            draw(&mut out)?;
            out.flush()?;
            return Ok(());
        }
        let name = self.path.display();
        stackglass_files::write_atomically(&self.path, |out| draw(out))
            .map_err(|error| Failure::new(format!("cannot write {name}: {error}")))?;
        message::print(&format!("{name}: {}", summary(&self.path)));
        if !self.opens {
            return Ok(());
        }
        browser::open(self.path.as_os_str()).map_err(|error| {
            Failure::new(format!("{error}; {name} was written: open it yourself, or set BROWSER"))
        })
    }
}
