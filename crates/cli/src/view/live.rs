//! The page of a recording that is being written: `record --view`.

use crate::message;
use std::env::current_exe;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that shows the recording. It has a pipe from this one: when this process ends, so does the page.
///
/// It is a process of its own so that reading takes no time from recording. In a group of its own, it gets no Ctrl-C: the first is the
/// recorded program's.
#[derive(Debug, Default)]
pub(crate) struct LivePage(Option<Child>);

impl LivePage {
    /// Shows a recording that is about to grow.
    pub(crate) fn of(recording: &Path) -> LivePage {
        let started = current_exe().and_then(|command| {
            Command::new(command)
                .args(["view", "--until-stdin-ends"])
                .arg(recording)
                .stdin(Stdio::piped())
                // The output of the recorded program goes to stdout, and nothing else.
                .stdout(io::stderr().as_fd().try_clone_to_owned()?)
                .process_group(0)
                .spawn()
        });
        match started {
            Ok(child) => LivePage(Some(child)),
            Err(error) => {
                message::print(&format!("cannot show the recording while it grows: {error}"));
                LivePage(None)
            }
        }
    }

    /// Returns when the page is closed. The caller has recorded all.
    pub(crate) fn wait(self) {
        if let Some(mut child) = self.0 {
            if matches!(child.try_wait(), Ok(None)) {
                message::print("the page stays until it is closed, or Ctrl-C");
            }
            let _pipe = child.stdin.take();
            // Nothing can be done about a process that cannot be waited for.
            let _ = child.wait();
        }
    }
}
